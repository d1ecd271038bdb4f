// MemoryLog: the bytes of batches in memory.
//
// Thread: any, one call at a time.
#ifndef NOWCALLS_STORE_MEMORY_LOG_H_
#define NOWCALLS_STORE_MEMORY_LOG_H_

#include <cstdint>
#include <deque>
#include <string>

#include "store/log.h"

namespace nowcalls::store {

class MemoryLog : public Log {
 public:
  Status Append(const ledger::SealedBatch& batch) override;
  Status Sync() override { return {}; }
  Status Read(uint64_t from, const BatchSink& sink) override;
  Status Trim(uint64_t number) override;

  uint64_t last() const { return trimmed_ + batches_.size(); }  // 0: there was none.
  // Forgets the batches behind `number`, as a crash does. REQUIRES: it was not trimmed.
  void Cut(uint64_t number);

 private:
  uint64_t trimmed_ = 0;  // The last batch that is forgotten.
  std::deque<std::string> batches_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_MEMORY_LOG_H_
