// StaleLog: a log whose last batches a reader may not see yet.
//
// Thread: one at a time.
#ifndef NOWCALLS_SIM_STALE_LOG_H_
#define NOWCALLS_SIM_STALE_LOG_H_

#include <cstdint>

#include "store/log.h"

namespace nowcalls::sim {

class StaleLog final : public store::Log {
 public:
  explicit StaleLog(store::Log* log) : log_(log) {}
  // Batches behind that number; UINT64_MAX: none.
  void Hide(uint64_t behind) { behind_ = behind; }
  Status Append(const ledger::SealedBatch& batch) override { return log_->Append(batch); }
  Status Sync() override { return log_->Sync(); }
  Status Trim(uint64_t number) override { return log_->Trim(number); }
  bool MayLackBatches() const override { return log_->MayLackBatches(); }
  bool OutlivesMachine() const override { return log_->OutlivesMachine(); }
  Status Read(uint64_t from, const BatchSink& sink) override {
    return log_->Read(from, [&](const ledger::SealedBatch& batch) {
      return batch.number() > behind_ ? Status::Ok() : sink(batch);
    });
  }

 private:
  store::Log* const log_;
  uint64_t behind_ = UINT64_MAX;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_STALE_LOG_H_
