// Salvage: reads what can be read of a ledger that is refused.
//
// Thread: one; the process must have no other, since children look at the data files. The ledger
// itself is only read: what has to be mended is mended in a copy.
//
// Of a log, every record that is complete and sound counts, also behind damage. If RocksDB can open
// the copy with these, each family is what its data files and the logs from its own point on say.
// If it cannot, because the manifest or a data file is damaged or gone, the data files that can be
// read become a database without order among them but that of their entries, and all logs are
// applied again behind them.
#ifndef NOWCALLS_STORE_SALVAGE_H_
#define NOWCALLS_STORE_SALVAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nowcalls/status.h"
#include "store/rocks_store.h"

namespace nowcalls::store {

struct SalvageReport {
  std::vector<std::string> lost;  // Sentences that name files, byte ranges and batches.
  uint64_t newest_batch = 0;      // The greatest number that a log or the witness tells of.
  bool rebuilt = false;           // RocksDB could not open it as it was.
};

// Copies the ledger of `data_dir` into `scratch_dir`, which must not exist, mends the copy, and
// opens it for Load, which passes over what is damaged (LedgerVisitor::OnUnreadable). kCorruption
// when nothing can be read, kNotFound when there is no ledger, kIoError.
Result<std::unique_ptr<RocksStore>> OpenSalvaged(const std::string& data_dir,
                                                 const std::string& scratch_dir,
                                                 SalvageReport* report);

// What was said of the copy in `scratch_dir`, as said of the ledger of `data_dir`, whose files the
// reader has: without what to do about damage, since it is being done.
std::string SaidOfLedger(const std::string& message, const std::string& scratch_dir,
                         const std::string& data_dir);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_SALVAGE_H_
