// Proves that a ledger has all of its batches.
//
// Each log record has the number of its batch (log data), one more than the record before. Data
// files and logs together reach up to the seal, and the witness knows how far they reached
// (ledger/witness.h). FORMAT.md has the rules.
//
// Thread: any. A message names the file and the batches.
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

// What is known of a ledger's batches apart from its logs.
struct KnownBatches {
  uint64_t sealed = 0;            // The last batch of what was opened.
  uint64_t witnessed = 0;         // This batch was on the disk.
  std::optional<uint64_t> floor;  // All later batches must be in the logs.
};

// kCorruption unless `segments`, all logs that are there, are whole. REQUIRES: no log is written
// meanwhile.
Status CheckChain(const std::string& ledger_dir, const std::map<uint64_t, LogSegment>& segments,
                  const KnownBatches& known);

// kDamaged when the manifest that CURRENT names is damaged, or shorter than the witness knows. A
// missing manifest is left to RocksDB. `floor_counts`: the witness means this manifest, or a later
// one that a crash kept out of CURRENT. If it means an earlier one, another program has written to
// the ledger since. REQUIRES: the manifest is not written meanwhile.
StoreError CheckManifest(rocksdb::FileSystem* files, const std::string& ledger_dir,
                         const std::optional<ledger::Witness>& witness, bool* floor_counts);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LOG_LOG_CHAIN_H_
