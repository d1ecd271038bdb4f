// Tables: the records of a ledger by key, as of one batch.
//
// Thread: applied, Apply and Sync on the writer, one thread at a time. Scan on one other thread,
// also at the same time. Load before either, or when the ledger changes its writer.
#ifndef NOWCALLS_STORE_TABLES_H_
#define NOWCALLS_STORE_TABLES_H_

#include <cstdint>

#include "ledger/scan.h"
#include "ledger/sealed_batch.h"
#include "nowcalls/status.h"
#include "store/ledger_source.h"

namespace nowcalls::store {

class Tables : public LedgerSource {
 public:
  // The number of the last batch that was applied; 0: none.
  virtual uint64_t applied() const = 0;

  // Applies `batch` whole or not at all. A batch that was applied before changes nothing.
  // kInvalidArgument: a batch between them is missing. kCorruption: the records are not what a
  // CommitBatch writes.
  virtual Status Apply(const ledger::SealedBatch& batch) = 0;

  // Makes durable what was applied.
  virtual Status Sync() = 0;

  virtual void Scan(const ledger::ScanRequest& request, ledger::ScanResult* result) = 0;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_TABLES_H_
