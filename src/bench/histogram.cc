#include "bench/histogram.h"

namespace nowcalls::bench {

void Histogram::Merge(const Histogram& other) {
  for (size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

void Histogram::Clear() {
  buckets_.fill(0);
  count_ = max_ = 0;
}

int64_t Histogram::Quantile(uint64_t parts_per_million) const {
  if (count_ == 0) return 0;
  __extension__ using Wide = unsigned __int128;
  const auto rank =
      static_cast<uint64_t>((static_cast<Wide>(count_) * parts_per_million + 999'999) / 1'000'000);
  uint64_t seen = 0;
  for (size_t i = 0; i < buckets_.size() - 1; ++i) {
    seen += buckets_[i];
    if (seen >= std::max<uint64_t>(rank, 1)) {
      return static_cast<int64_t>(std::min(LargestOf(i), max_));
    }
  }
  return max();
}

// The largest value that IndexOf maps to `index`.
uint64_t Histogram::LargestOf(size_t index) {
  if (index < 2 * kSubBuckets) return index;
  const size_t shift = index / kSubBuckets - 1;
  const uint64_t top = index - shift * kSubBuckets;
  return ((top + 1) << shift) - 1;
}

}  // namespace nowcalls::bench
