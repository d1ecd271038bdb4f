#include "cluster/trim_plan.h"

#include <algorithm>

namespace nowcalls::cluster {

TrimPlan::TrimPlan(uint64_t bytes_max, uint64_t first, uint64_t last)
    : bytes_max_(bytes_max), first_(first == 0 ? last + 1 : first) {
  for (uint64_t number = first_; number <= last; ++number) {
    sizes_.push_back(kUnknownBytes);
    bytes_ += kUnknownBytes;
  }
}

void TrimPlan::Appended(uint64_t number, size_t bytes) {
  if (number != first_ + sizes_.size()) return;
  sizes_.push_back(bytes);
  bytes_ += bytes;
}

uint64_t TrimPlan::To(uint64_t synced) {
  const uint64_t last = first_ + sizes_.size() - 1;
  const uint64_t kept = last > kSlotsKept ? last - kSlotsKept : 0;
  const uint64_t spare = std::min(synced, kept);
  while (bytes_ > bytes_max_ / 4 && first_ <= spare) DropUpTo(first_);
  // Beyond the limit a member that is behind does not hold the others up.
  while (bytes_ > bytes_max_ && sizes_.size() > 1) DropUpTo(first_);
  return first_ - 1;
}

void TrimPlan::DropUpTo(uint64_t number) {
  while (first_ <= number && !sizes_.empty()) {
    bytes_ -= sizes_.front();
    sizes_.pop_front();
    ++first_;
  }
}

}  // namespace nowcalls::cluster
