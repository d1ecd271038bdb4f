// Where the batches of a ledger end whose last ones were answered before they were on the disk.
//
// Thread: any. With the durabilities `interval` and `none` a crash of the machine may leave any
// part of what was not synced: a log without some of its sectors, a later log without an earlier
// one. Only the whole batches before the first that is not whole are the ledger then; what is found
// behind them was lost, and must not come back. The witness tells whether that is so
// (ledger/witness.h), and which batches it cannot be true of: these were on the disk. FORMAT.md has
// the rules.
#ifndef NOWCALLS_STORE_LOG_END_H_
#define NOWCALLS_STORE_LOG_END_H_

#include <rocksdb/file_system.h>

#include <cstdint>
#include <optional>
#include <string>

#include "ledger/witness.h"
#include "store/log_views.h"

namespace nowcalls::store {

struct LogEnd {
  HiddenLogs hidden;
  // Whether the logs have more than the ledger, or may have had; then the next are set.
  bool early = false;
  uint64_t batch = 0;  // The last of the ledger.
  std::string place;   // Behind it, in words.
  // The greatest RocksDB sequence number up to there, if a log tells. No data file may be ahead of
  // it.
  std::optional<uint64_t> sequence;
};

// `floor` is that of the witness, if it counts (CheckManifest in log_chain.h). Nothing is early
// where the witness forbids it; the other checks refuse such a ledger. A log that is deleted
// meanwhile is a failure. REQUIRES: only the newest log may be written meanwhile.
rocksdb::IOStatus FindLogEnd(rocksdb::FileSystem* files, const std::string& ledger_dir,
                             const ledger::Witness& witness, std::optional<uint64_t> floor,
                             LogEnd* end);

// Puts all that the logs have on the disk, so that what is read of them now will be found again.
rocksdb::IOStatus SyncLogs(rocksdb::FileSystem* files, const std::string& ledger_dir);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LOG_END_H_
