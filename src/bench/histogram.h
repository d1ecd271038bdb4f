// Histogram: durations in fixed memory, to three digits.
//
// Thread: one at a time. Log-linear as HdrHistogram: 1024 buckets a power of two; below 2048 ns
// exact. Durations from kLongestNs on share the last bucket; max() is exact.
#ifndef NOWCALLS_BENCH_HISTOGRAM_H_
#define NOWCALLS_BENCH_HISTOGRAM_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace nowcalls::bench {

class Histogram {
 public:
  static constexpr int64_t kLongestNs = int64_t{1} << 37;  // 137 s.

  // Negative ones count as 0.
  struct Duration {
    explicit Duration(int64_t duration_ns)
        : ns(static_cast<uint64_t>(std::max<int64_t>(duration_ns, 0))), bucket(IndexOf(ns)) {}
    uint64_t ns;
    size_t bucket;
  };

  void Record(const Duration& duration) {
    ++buckets_[duration.bucket];
    ++count_;
    max_ = std::max(max_, duration.ns);
  }
  void Record(int64_t ns) { Record(Duration(ns)); }
  void Merge(const Histogram& other);
  void Clear();

  uint64_t count() const { return count_; }
  int64_t max() const { return static_cast<int64_t>(max_); }
  // The smallest duration that `parts_per_million` do not exceed: never too small, at most 0.1 %
  // too large; 0: none recorded. REQUIRES: parts <= 1,000,000.
  int64_t Quantile(uint64_t parts_per_million) const;

 private:
  static constexpr int kSubBits = 10;
  static constexpr uint64_t kSubBuckets = uint64_t{1} << kSubBits;
  static constexpr int kExponents = std::countr_zero(uint64_t{kLongestNs}) - kSubBits;

  static size_t IndexOf(uint64_t value) {
    const uint64_t bounded = std::min(value, uint64_t{kLongestNs} - 1);
    const int shift = std::max(static_cast<int>(std::bit_width(bounded)) - kSubBits - 1, 0);
    return static_cast<size_t>(shift) * kSubBuckets + (bounded >> shift);
  }
  static uint64_t LargestOf(size_t index);

  std::array<uint64_t, (kExponents + 1) * kSubBuckets> buckets_{};
  uint64_t count_ = 0;
  uint64_t max_ = 0;
};

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_HISTOGRAM_H_
