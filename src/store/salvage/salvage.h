// Salvage: reads what can be read of a ledger that is refused.
//
// The ledger itself is only read: what has to be mended is mended in a copy. Of a log, every record
// that is complete and sound counts, also behind damage. If RocksDB can open the copy with these
// logs, each family is what its data files and the logs from its own point on say. If it cannot,
// because the manifest or a data file is damaged or gone, the data files that can be read become a
// database, and all logs are applied again behind them.
//
// Thread: one; the process must have no other, since children look at the data files.
#ifndef NOWCALLS_STORE_SALVAGE_SALVAGE_H_
#define NOWCALLS_STORE_SALVAGE_SALVAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nowcalls/status.h"
#include "store/salvage/salvaged_ledger.h"

namespace nowcalls::store {

struct SalvageReport {
  std::vector<std::string> lost;  // Sentences that name files, byte ranges and batches.
  uint64_t newest_batch = 0;      // The greatest number that a log or the witness tells of.
  bool rebuilt = false;           // RocksDB could not open the copy as it was.
};

// Copies the ledger of `data_dir` into `scratch_dir`, which must not exist, mends the copy, and
// opens it. kCorruption when nothing can be read, kNotFound when there is no ledger, kIoError.
Result<std::unique_ptr<SalvagedLedger>> OpenSalvaged(const std::string& data_dir,
                                                     const std::string& scratch_dir,
                                                     SalvageReport* report);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_SALVAGE_SALVAGE_H_
