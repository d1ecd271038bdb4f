// SimLog: the log of a simulated ledger, which outlives its processes.
//
// Thread: one at a time.
#ifndef NOWCALLS_SIM_SIM_LOG_H_
#define NOWCALLS_SIM_SIM_LOG_H_

#include <cstdint>

#include "store/log.h"
#include "store/memory_log.h"

namespace nowcalls::sim {

class SimLog : public store::Log {
 public:
  virtual uint64_t last() const = 0;  // 0: there was none.
  // Forgets the batches behind `number`, as a crash does. REQUIRES: it was not trimmed.
  virtual void Cut(uint64_t number) = 0;
};

// Of a server with a disk of its own.
class LocalLog final : public SimLog {
 public:
  Status Append(const ledger::SealedBatch& batch) override { return log_.Append(batch); }
  Status Sync() override { return {}; }
  Status Read(uint64_t from, const BatchSink& sink) override { return log_.Read(from, sink); }
  Status Trim(uint64_t number) override { return log_.Trim(number); }
  uint64_t last() const override { return log_.last(); }
  void Cut(uint64_t number) override { log_.Cut(number); }

 private:
  store::MemoryLog log_;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SIM_LOG_H_
