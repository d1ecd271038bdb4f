// Proves that a ledger has all batches (FORMAT.md, The chain of batches).
//
// Thread: any. Messages name file and batches.
#ifndef NOWCALLS_STORE_LOG_LOG_CHAIN_H_
#define NOWCALLS_STORE_LOG_LOG_CHAIN_H_

#include <rocksdb/file_system.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "ledger/witness.h"
#include "nowcalls/status.h"
#include "store/disk/store_error.h"
#include "store/log/log_views.h"

namespace nowcalls::store {

struct KnownBatches {
  uint64_t sealed = 0;            // The last batch of what was opened.
  uint64_t witnessed = 0;         // This batch was on the disk.
  std::optional<uint64_t> floor;  // All later batches must be in the logs.
};

// kCorruption unless `segments`, all existing logs, are whole. REQUIRES: no log is written
// meanwhile.
Status CheckChain(const std::string& ledger_dir, const std::map<uint64_t, LogSegment>& segments,
                  const KnownBatches& known);

// kDamaged: CURRENT's manifest is damaged, or shorter than the witness knows; a missing one is left
// to RocksDB. `floor_counts`: false if the witness means an earlier manifest. REQUIRES: no one
// writes the manifest.
StoreError CheckManifest(rocksdb::FileSystem* files, const std::string& ledger_dir,
                         const std::optional<ledger::Witness>& witness, bool* floor_counts);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LOG_LOG_CHAIN_H_
