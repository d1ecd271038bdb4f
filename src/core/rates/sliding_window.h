// SlidingWindow: calls that passed in the last interval, by buckets of equal length.
//
// Thread: loop. Bucket i covers [i x length, (i + 1) x length) of the ledger clock. The window is
// the bucket of now and earlier ones, as in Sentinel's LeapArray. The limit holds for any interval
// shorter by one bucket. The next bucket counts calls borrowed from it when it begins.
//
// Memory: 96 bytes and 8 a bucket; 16 once calls are borrowed.
#ifndef NOWCALLS_CORE_RATES_SLIDING_WINDOW_H_
#define NOWCALLS_CORE_RATES_SLIDING_WINDOW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nowcalls::core {

class SlidingWindow {
 public:
  static constexpr int32_t kBucketsMax = 1000;  // A rule with more samples gets longer buckets.

  SlidingWindow(int64_t interval_ms, int32_t buckets);  // REQUIRES: both at least 1.

  // Other calls are about its moment.
  void Advance(int64_t now_ms) {
    if (now_ms >= begin_ms_ + length_ms_) Slide(now_ms);
  }
  void Add(int64_t count) {
    passed_[current_] += count;
    sum_ += count;
  }
  void Borrow(int64_t count);

  int64_t passed() const { return sum_; }  // With calls that earlier buckets borrowed from it.
  int64_t borrowed() const { return borrowed_sum_; }  // By buckets of the window.
  int64_t borrowed_from_next() const { return borrowed_.empty() ? 0 : borrowed_[current_]; }
  int64_t oldest() const { return passed_[After(current_)]; }  // Leaves the window next.

  // Calls visit(begin_ms, passed, borrowed), oldest first.
  template <typename Visit>
  void ForEach(Visit&& visit) const {
    size_t bucket = current_;
    int64_t begin_ms = begin_ms_ - length_ms_ * static_cast<int64_t>(passed_.size());
    for (size_t i = 0; i < passed_.size(); ++i) {
      bucket = After(bucket);
      begin_ms += length_ms_;
      visit(begin_ms, passed_[bucket], borrowed_.empty() ? 0 : borrowed_[bucket]);
    }
  }
  // As ForEach showed; oldest first. False: no bucket begins there.
  bool Restore(int64_t begin_ms, int64_t passed, int64_t borrowed);

  size_t buckets() const { return passed_.size(); }
  int64_t length_ms() const { return length_ms_; }
  int64_t interval_ms() const { return interval_ms_; }

 private:
  size_t After(size_t bucket) const { return bucket + 1 == passed_.size() ? 0 : bucket + 1; }
  void Slide(int64_t now_ms);
  void BeginNext();

  int64_t interval_ms_;
  int64_t length_ms_;
  int64_t begin_ms_ = 0;  // Of the current bucket.
  size_t current_ = 0;
  int64_t sum_ = 0;  // Of passed_.
  int64_t borrowed_sum_ = 0;
  std::vector<int64_t> passed_;
  std::vector<int64_t> borrowed_;  // By the bucket that borrowed. Empty until a call borrows.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RATES_SLIDING_WINDOW_H_
