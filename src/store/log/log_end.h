// The end of a ledger after unsynced commits (`interval`, `none`): before the first batch that is
// not whole (FORMAT.md).
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
  // RocksDB's greatest sequence number up to `place`. No data file may exceed it.
  std::optional<uint64_t> sequence;
};

// `floor`: of the witness, if it counts (CheckManifest). A forbidden early end is left to
// log_chain.h. Fails if a log is deleted meanwhile. REQUIRES: only the newest log may be written
// meanwhile.
rocksdb::IOStatus FindLogEnd(rocksdb::FileSystem* files, const std::string& ledger_dir,
                             const ledger::Witness& witness, std::optional<uint64_t> floor,
                             LogEnd* end);

rocksdb::IOStatus SyncLogs(rocksdb::FileSystem* files, const std::string& ledger_dir);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LOG_LOG_END_H_
