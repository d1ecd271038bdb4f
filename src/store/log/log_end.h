// Where a ledger ends whose last batches were answered before they were on the disk.
//
// With the durabilities `interval` and `none` a crash of the machine may leave any part of what was
// not synced: a log without some of its sectors, or a later log without an earlier one. The ledger
// is then the whole batches before the first that is not whole. Batches behind it were lost, and
// must not come back. The witness (ledger/witness.h) tells whether a ledger may end so, and which
// batches it must have. FORMAT.md has the rules.
//
// Thread: any.
#ifndef NOWCALLS_STORE_LOG_LOG_END_H_
#define NOWCALLS_STORE_LOG_LOG_END_H_

#include <rocksdb/file_system.h>

#include <cstdint>
#include <optional>
#include <string>

#include "ledger/witness.h"
#include "store/log/log_views.h"

namespace nowcalls::store {

struct LogEnd {
  HiddenLogs hidden;
  bool early = false;  // The logs have more than the ledger, or may have had more.
  // Set if `early`.
  uint64_t batch = 0;  // The last batch of the ledger.
  std::string place;   // Behind that batch, in words.
  // The greatest RocksDB sequence number up to `place`, if a log tells. No data file may be ahead.
  std::optional<uint64_t> sequence;
};

// `floor` is that of the witness, if it counts (CheckManifest in log_chain.h). No end is early
// where the witness forbids it; log_chain.h refuses such a ledger. A log that is deleted meanwhile
// is a failure. REQUIRES: only the newest log may be written meanwhile.
rocksdb::IOStatus FindLogEnd(rocksdb::FileSystem* files, const std::string& ledger_dir,
                             const ledger::Witness& witness, std::optional<uint64_t> floor,
                             LogEnd* end);

// Syncs all logs, so that what is read of them now will be found again.
rocksdb::IOStatus SyncLogs(rocksdb::FileSystem* files, const std::string& ledger_dir);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LOG_LOG_END_H_
