// SimStore: the ledger of a simulated server; it outlives the processes.
//
// Thread: one at a time. A MemoryStore, whose steps of one sweep see the ledger as it was when the
// sweep began, as those of RocksStore do. When things take effect is the caller's to say.
#ifndef NOWCALLS_SIM_SIM_STORE_H_
#define NOWCALLS_SIM_SIM_STORE_H_

#include <memory>

#include "store/memory_store.h"

namespace nowcalls::sim {

class SimStore : public store::Store {
 public:
  explicit SimStore(const ledger::Format& format) : ledger_(format) {}

  Status Load(store::LedgerVisitor* visitor) override { return ledger_.Load(visitor); }
  Status Commit(const ledger::CommitBatch& batch) override { return ledger_.Commit(batch); }
  Status Sync() override { return {}; }
  void Scan(const ledger::ScanRequest& request, ledger::ScanResult* result) override {
    if (!request.resume) view_ = std::make_unique<store::MemoryStore>(ledger_);
    view_->Scan(request, result);
  }

 private:
  store::MemoryStore ledger_;
  std::unique_ptr<store::MemoryStore> view_;  // Of the sweep that began last.
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SIM_STORE_H_
