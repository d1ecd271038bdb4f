// Salvage: reads what is readable of a refused ledger, from a mended copy. Steps: salvage.cc.
//
// Thread: one, the process's only one, since children look at data files.
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

// Copies `data_dir`'s ledger into `scratch_dir`, which must not exist, mends and opens the copy.
// kCorruption: nothing readable; kNotFound: no ledger; kIoError.
Result<std::unique_ptr<SalvagedLedger>> OpenSalvaged(const std::string& data_dir,
                                                     const std::string& scratch_dir,
                                                     SalvageReport* report);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_SALVAGE_SALVAGE_H_
