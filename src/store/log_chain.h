// What proves that a ledger has all of its batches: each has the number of the one before it and
// one more (log data), the data files and the logs together reach up to the seal, and the witness
// knows how far they reached (ledger/witness.h). FORMAT.md has the rules.
//
// Thread: any. A message names the file and the batches.
#ifndef NOWCALLS_STORE_LOG_CHAIN_H_
#define NOWCALLS_STORE_LOG_CHAIN_H_

#include <rocksdb/file_system.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "ledger/witness.h"
#include "nowcalls/status.h"
#include "store/log_views.h"

namespace nowcalls::store {

// What is known of a ledger's batches apart from its logs.
struct KnownBatches {
  uint64_t sealed = 0;            // What was opened ends with it.
  uint64_t witnessed = 0;         // Was on the disk.
  std::optional<uint64_t> floor;  // Those of all later batches must be in the logs.
};

// kCorruption unless the `segments`, of all logs that are there, are whole. REQUIRES: none of
// them is written meanwhile.
Status CheckChain(const std::string& ledger_dir, const std::map<uint64_t, LogSegment>& segments,
                  const KnownBatches& known);

// kCorruption when the manifest that CURRENT names is damaged, or shorter than the witness knows.
// `floor_counts`: the witness means this one, or a later one, which a crash kept out of CURRENT.
// An earlier one means that another program has written to the ledger since. Whether there is such
// a file is left to RocksDB. REQUIRES: it is not written meanwhile.
Status CheckManifest(rocksdb::FileSystem* files, const std::string& ledger_dir,
                     const std::optional<ledger::Witness>& witness, bool* floor_counts);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LOG_CHAIN_H_
