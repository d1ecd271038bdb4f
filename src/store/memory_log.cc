#include "store/memory_log.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "store/batch_order.h"

namespace nowcalls::store {

Status MemoryLog::Append(const ledger::SealedBatch& batch) {
  NOWCALLS_RETURN_IF_ERROR(CheckFollows(batch.number(), last()));
  batches_.emplace_back(batch.bytes());
  return {};
}

Status MemoryLog::Read(uint64_t from, const BatchSink& sink) {
  if (from <= trimmed_) {
    return Status::FailedPrecondition("the log begins with batch " + std::to_string(trimmed_ + 1) +
                                      ", behind batch " + std::to_string(from));
  }
  for (uint64_t number = from; number <= last(); ++number) {
    const auto batch = ledger::SealedBatch::Parse(batches_[number - trimmed_ - 1]);
    if (!batch.ok()) return batch.status().WithContext("batch " + std::to_string(number));
    NOWCALLS_RETURN_IF_ERROR(sink(*batch));
  }
  return {};
}

Status MemoryLog::Trim(uint64_t number) {
  for (; trimmed_ < number && !batches_.empty(); ++trimmed_) batches_.pop_front();
  return {};
}

void MemoryLog::Cut(uint64_t number) {
  NOWCALLS_CHECK(number >= trimmed_);
  batches_.resize(std::min<uint64_t>(batches_.size(), number - trimmed_));
}

}  // namespace nowcalls::store
