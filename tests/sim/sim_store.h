// SimStore: the ledger of a simulated server; it outlives the processes.
//
// Thread: one at a time. A MemoryStore, whose steps of one sweep see the ledger as it was when the
// sweep began, as those of RocksStore do. When things take effect is the caller's to say. Batches
// that were not synced go with the machine, but never one without those behind it. A batch may be
// on the disk before it is applied: then a new process finds it, and a sweep does not.
#ifndef NOWCALLS_SIM_SIM_STORE_H_
#define NOWCALLS_SIM_SIM_STORE_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>

#include "base/check.h"
#include "store/memory_store.h"

namespace nowcalls::sim {

class SimStore : public store::Store {
 public:
  // `unsynced`: Commit does not sync.
  SimStore(const ledger::Format& format, bool unsynced)
      : ledger_(format), safe_(format), unsynced_(unsynced) {}

  Status Load(store::LedgerVisitor* visitor) override {
    ApplyLate();
    return ledger_.Load(visitor);
  }
  Status Commit(const ledger::CommitBatch& batch) override {
    ApplyLate();
    if (unsynced_) at_risk_.push_back(batch);
    return ledger_.Commit(batch);
  }
  // To the disk; ApplyLate, or whatever follows, applies it. REQUIRES: not `unsynced`.
  void CommitLate(const ledger::CommitBatch& batch) {
    NOWCALLS_CHECK(!unsynced_);
    ApplyLate();
    late_ = batch;
  }
  void ApplyLate() {
    if (late_.has_value()) NOWCALLS_CHECK(ledger_.Commit(*late_).ok());
    late_.reset();
  }
  bool MayLackBatches() const override { return unsynced_; }
  Status Sync() override {
    for (; !at_risk_.empty(); at_risk_.pop_front()) {
      NOWCALLS_RETURN_IF_ERROR(safe_.Commit(at_risk_.front()));
    }
    return {};
  }
  void Scan(const ledger::ScanRequest& request, ledger::ScanResult* result) override {
    if (!request.resume) view_ = std::make_unique<store::MemoryStore>(ledger_);
    view_->Scan(request, result);
  }

  size_t at_risk() const { return at_risk_.size(); }
  // The machine goes down: of the batches at risk the first `kept` are left.
  void Lose(size_t kept) {
    at_risk_.resize(kept);
    NOWCALLS_CHECK(Sync().ok());
    ledger_ = safe_;
    view_.reset();
  }

 private:
  store::MemoryStore ledger_;
  store::MemoryStore safe_;  // Up to the last Sync, if `unsynced_`.
  const bool unsynced_;
  std::optional<ledger::CommitBatch> late_;
  std::deque<ledger::CommitBatch> at_risk_;
  std::unique_ptr<store::MemoryStore> view_;  // Of the sweep that began last.
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SIM_STORE_H_
