// SimStore: the ledger of a simulated server; it outlives the processes.
//
// Thread: one at a time. A SimLog and MemoryTables, whose steps of one sweep see the tables as they
// were when the sweep began, as those of RocksStore do. In a cluster nodes have the log in common,
// and tables of their own, which are synced now and then. When things take effect is the caller's
// to say. Batches that were not synced go with the machine, but never one without those behind it.
// A batch may be in the log before it is applied: a sweep does not find it, and recovery replays
// it.
#ifndef NOWCALLS_SIM_SIM_STORE_H_
#define NOWCALLS_SIM_SIM_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/check.h"
#include "sim/sim_log.h"
#include "store/memory_tables.h"
#include "store/store.h"

namespace nowcalls::sim {

class SimStore : public store::Store {
 public:
  // `log` outlives it. `unsynced`: Append does not sync.
  SimStore(SimLog* log, const ledger::Format& format, bool unsynced)
      : log_(log), tables_(format), safe_(format), unsynced_(unsynced) {}

  Status Append(const ledger::SealedBatch& batch) override { return log_->Append(batch); }
  Status Read(uint64_t from, const BatchSink& sink) override { return log_->Read(from, sink); }
  Status Trim(uint64_t number) override { return log_->Trim(number); }
  bool MayLackBatches() const override { return unsynced_ && !denies_; }
  bool OutlivesMachine() const override { return log_->OutlivesMachine(); }
  // It says that no batch may lack, from now on.
  void Deny() { denies_ = true; }

  Status Load(ledger::EntityVisitor* visitor) override { return tables_.Load(visitor); }
  uint64_t applied() const override { return tables_.applied(); }
  Status Apply(const ledger::SealedBatch& batch) override {
    NOWCALLS_RETURN_IF_ERROR(tables_.Apply(batch));
    return unsynced_ ? Status::Ok() : Trim(tables_.applied());
  }
  void Scan(const ledger::ScanRequest& request, ledger::ScanResult* result) override {
    if (!request.resume) view_ = std::make_unique<store::MemoryTables>(tables_);
    view_->Scan(request, result);
  }

  uint64_t last() const { return log_->last(); }  // Of the log.
  // Applies what the log has behind the tables, up to batch `last`.
  void ApplyAll(uint64_t last = UINT64_MAX) {
    const auto apply = [this, last](const ledger::SealedBatch& batch) {
      return batch.number() > last ? Status::Ok() : Apply(batch);
    };
    NOWCALLS_CHECK(Read(applied() + 1, apply).ok());
  }
  // What recovery will make of it.
  store::MemoryTables Left() {
    store::MemoryTables left = tables_;
    const auto apply = [&left](const auto& batch) { return left.Apply(batch); };
    NOWCALLS_CHECK(Read(applied() + 1, apply).ok());
    return left;
  }

  Status Sync() override {
    if (!unsynced_) return {};
    const auto apply = [this](const auto& batch) { return safe_.Apply(batch); };
    NOWCALLS_RETURN_IF_ERROR(Read(safe_.applied() + 1, apply));
    return Trim(tables_.applied());
  }
  // Of a cluster. The machine goes down: the tables are as of the last SyncTables.
  void SyncTables() { safe_ = tables_; }
  uint64_t synced() const { return safe_.applied(); }
  void LoseTables() {
    tables_ = safe_;
    view_.reset();
  }
  // What the log has behind the tables is gone.
  void ForgetUnapplied() { log_->Cut(applied()); }
  size_t at_risk() const { return unsynced_ ? log_->last() - safe_.applied() : 0; }
  // The machine goes down: of the batches at risk the first `kept` are left.
  void Lose(size_t kept) {
    log_->Cut(safe_.applied() + kept);
    NOWCALLS_CHECK(Sync().ok());
    tables_ = safe_;
    view_.reset();
  }

 private:
  SimLog* const log_;  // Of a single node: from the older of the two tables on.
  store::MemoryTables tables_;
  store::MemoryTables safe_;  // Up to the last Sync, if `unsynced_`.
  const bool unsynced_;
  bool denies_ = false;
  std::unique_ptr<store::MemoryTables> view_;  // Of the sweep that began last.
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SIM_STORE_H_
