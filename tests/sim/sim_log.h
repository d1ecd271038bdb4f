// SimLog: the log of a simulated ledger, with the claim of its writer.
//
// Thread: one at a time. Each claim has a term of its own, and takes the log from the writer
// before: a batch of another term is refused. Without a claim the term is 0. A log that nodes have
// in common forgets nothing.
#ifndef NOWCALLS_SIM_SIM_LOG_H_
#define NOWCALLS_SIM_SIM_LOG_H_

#include <cstdint>

#include "store/memory_log.h"

namespace nowcalls::sim {

class SimLog : public store::MemoryLog {
 public:
  explicit SimLog(bool shared) : shared_(shared) {}

  Status Append(const ledger::SealedBatch& batch) override {
    if (batch.term() != term_) return Status::FailedPrecondition("another writer has the claim");
    return MemoryLog::Append(batch);
  }
  Status Trim(uint64_t number) override { return shared_ ? Status() : MemoryLog::Trim(number); }

  uint64_t Claim() { return ++term_; }
  uint64_t term() const { return term_; }

 private:
  const bool shared_;
  uint64_t term_ = 0;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SIM_LOG_H_
