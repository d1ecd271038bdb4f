// SlidingWindow: how many calls passed in the last interval, counted in buckets of equal length.
//
// Thread: loop. Bucket i covers [i x length, (i + 1) x length) of the ledger clock; the window is
// the bucket of now and those before it, as in Sentinel's LeapArray. Calls may be borrowed from the
// next bucket: they are counted in it from its beginning on.
#ifndef NOWCALLS_CORE_SLIDING_WINDOW_H_
#define NOWCALLS_CORE_SLIDING_WINDOW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nowcalls::core {

class SlidingWindow {
 public:
  // Of one window; a rule with more samples gets longer buckets.
  static constexpr int32_t kBucketsMax = 1000;

  struct Bucket {
    int64_t passed = 0;
    int64_t lent = 0;  // By the next bucket, to calls of this one.
  };

  // REQUIRES: both at least 1.
  SlidingWindow(int64_t interval_ms, int32_t buckets);

  // Drops what is older than the interval. Time never goes back.
  void Advance(int64_t now_ms) {
    if (now_ms >= begin_ms_ + length_ms_) Slide(now_ms);
  }
  void Add(int64_t count) {
    buckets_[current_].passed += count;
    passed_ += count;
  }
  // REQUIRES: Advance, as the rest.
  void Borrow(int64_t count) {
    buckets_[current_].lent += count;
    lent_ += count;
  }

  // In the window, what was borrowed from its buckets included.
  int64_t passed() const { return passed_; }
  // To calls of the window.
  int64_t lent() const { return lent_; }
  // By the bucket that comes next.
  int64_t lent_by_next() const { return buckets_[current_].lent; }
  // In the bucket that the window loses next.
  int64_t oldest() const { return buckets_[(current_ + 1) % buckets_.size()].passed; }

  int64_t length_ms() const { return length_ms_; }
  int64_t interval_ms() const { return interval_ms_; }
  // When the bucket of now ends.
  int64_t end_ms() const { return begin_ms_ + length_ms_; }

 private:
  void Slide(int64_t now_ms);
  void Next();

  int64_t interval_ms_;
  int64_t length_ms_;
  int64_t begin_ms_ = 0;  // Of the current bucket.
  size_t current_ = 0;
  int64_t passed_ = 0;
  int64_t lent_ = 0;
  std::vector<Bucket> buckets_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_SLIDING_WINDOW_H_
