// TimeHistogram: times as quantiles, counts below fixed times, and a sum, in ms.
//
// Thread: loop. A quantile is at most 25 % above the true one. 512 bytes; times below 16 ms lie in
// the cache line of the sum.
#ifndef NOWCALLS_CORE_TABLES_TIME_HISTOGRAM_H_
#define NOWCALLS_CORE_TABLES_TIME_HISTOGRAM_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>

namespace nowcalls::core {

// A bucket that reaches kInBucketMax halves all buckets and the sum, so later times weigh more.
template <uint32_t kInBucketMax>
class alignas(64) TimeHistogramUpTo {
  // 0..7 exactly, then four to a doubling, up to 2^32 ms (50 days) and beyond.
  static constexpr size_t kExact = 8;
  static constexpr size_t kBuckets = kExact + 4 * 29;

 public:
  void Add(int64_t time_ms) {
    const auto ms = static_cast<uint64_t>(std::max<int64_t>(0, time_ms));
    sum_ms_ += ms;
    if (++buckets_[BucketOf(ms)] == kInBucketMax) Halve();
    longest_ms_ = std::max(longest_ms_, ms);
  }

  uint64_t sum_ms() const { return sum_ms_; }
  uint64_t longest_ms() const { return longest_ms_; }

  class Reading {
   public:
    explicit Reading(const TimeHistogramUpTo& from) : longest_ms_(from.longest_ms_) {
      std::partial_sum(from.buckets_.begin(), from.buckets_.end(), up_to_.begin(), std::plus<>());
    }

    uint64_t count() const { return up_to_.back(); }

    // The upper end of its bucket, at most the longest, in ms; 0: nothing was added. REQUIRES: 0 <
    // quantile <= 1.
    uint64_t Quantile(double quantile) const {
      if (count() == 0) return longest_ms_;
      const double rank = std::ceil(quantile * static_cast<double>(count()));
      const auto wanted = std::clamp<uint64_t>(static_cast<uint64_t>(rank), 1, count());
      const auto bucket = std::lower_bound(up_to_.begin(), up_to_.end(), wanted);
      return std::min(UpperEnd(static_cast<size_t>(bucket - up_to_.begin())), longest_ms_);
    }

    // REQUIRES: IsEdge(ms).
    uint64_t CountBelow(uint64_t ms) const { return up_to_[BucketOf(ms) - 1]; }

   private:
    std::array<uint64_t, kBuckets> up_to_{};  // Of each bucket: the count in it and in those below.
    uint64_t longest_ms_;
  };
  Reading Read() const { return Reading(*this); }

  // Whether a bucket but the first begins at `ms`.
  static constexpr bool IsEdge(uint64_t ms) { return ms > 0 && BucketOf(ms) != BucketOf(ms - 1); }

 private:
  void Halve() {
    for (uint32_t& bucket : buckets_) bucket /= 2;
    sum_ms_ /= 2;
  }

  static constexpr size_t BucketOf(uint64_t ms) {
    if (ms < kExact) return static_cast<size_t>(ms);
    const auto exponent = static_cast<size_t>(std::bit_width(ms)) - 1;  // >= 3
    const size_t quarter = (ms >> (exponent - 2)) & 3;
    return std::min(kBuckets - 1, kExact + 4 * (exponent - 3) + quarter);
  }

  static uint64_t UpperEnd(size_t bucket) {
    if (bucket < kExact) return bucket;
    if (bucket == kBuckets - 1) return UINT64_MAX;
    const size_t exponent = 3 + (bucket - kExact) / 4;
    const uint64_t quarter = (bucket - kExact) % 4;
    return ((4 + quarter + 1) << (exponent - 2)) - 1;
  }

  uint64_t longest_ms_ = 0;
  uint64_t sum_ms_ = 0;  // Wraps after 2^64 ms.
  std::array<uint32_t, kBuckets> buckets_{};
};

using TimeHistogram = TimeHistogramUpTo<UINT32_MAX>;  // Reached after hours at 100,000 a second.
static_assert(sizeof(TimeHistogram) == 512);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TABLES_TIME_HISTOGRAM_H_
