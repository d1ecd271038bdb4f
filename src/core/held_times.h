// HeldTimes: how long the tokens of a flow were held, as quantiles.
//
// Thread: loop. Four buckets to each doubling of the time, so a quantile is at most 25 % above the
// true one. 512 bytes; times below 24 ms are in the same cache line as the longest.
#ifndef NOWCALLS_CORE_HELD_TIMES_H_
#define NOWCALLS_CORE_HELD_TIMES_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace nowcalls::core {

// When a bucket reaches kInBucketMax, all buckets are halved. That hardly changes a quantile; later
// times weigh more.
template <uint32_t kInBucketMax>
class alignas(64) HeldTimesUpTo {
 public:
  void Add(int64_t held_ms) {
    const auto ms = static_cast<uint64_t>(std::max<int64_t>(0, held_ms));
    if (++buckets_[BucketOf(ms)] == kInBucketMax) Halve();
    longest_ms_ = std::max(longest_ms_, ms);
  }

  uint64_t count() const { return std::accumulate(buckets_.begin(), buckets_.end(), uint64_t{0}); }
  uint64_t longest_ms() const { return longest_ms_; }

  // The upper end of the bucket in which the quantile lies, in milliseconds, never above the
  // longest; 0 when nothing was added. REQUIRES: 0 < quantile <= 1.
  uint64_t Quantile(double quantile) const {
    const auto rank = static_cast<uint64_t>(std::ceil(quantile * static_cast<double>(count())));
    uint64_t seen = 0;
    for (size_t i = 0; i < buckets_.size(); ++i) {
      seen += buckets_[i];
      if (seen >= rank && seen > 0) return std::min(UpperEnd(i), longest_ms_);
    }
    return longest_ms_;
  }

 private:
  // 0..7 exactly, then four to a doubling, up to 2^32 ms (50 days) and beyond.
  static constexpr size_t kExact = 8;
  static constexpr size_t kBuckets = kExact + 4 * 29;

  void Halve() {
    for (uint32_t& bucket : buckets_) bucket /= 2;
  }

  static size_t BucketOf(uint64_t ms) {
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
  std::array<uint32_t, kBuckets> buckets_{};
};

// At some hundred thousand tokens a second a bucket reaches that after hours.
using HeldTimes = HeldTimesUpTo<UINT32_MAX>;
static_assert(sizeof(HeldTimes) == 512);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_HELD_TIMES_H_
