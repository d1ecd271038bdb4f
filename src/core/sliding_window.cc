#include "core/sliding_window.h"

#include <algorithm>

namespace nowcalls::core {
namespace {

int64_t RoundUp(int64_t dividend, int64_t divisor) { return (dividend + divisor - 1) / divisor; }

}  // namespace

SlidingWindow::SlidingWindow(int64_t interval_ms, int32_t buckets) : interval_ms_(interval_ms) {
  const int64_t wanted = std::min<int64_t>({buckets, kBucketsMax, interval_ms});
  length_ms_ = RoundUp(interval_ms, wanted);
  buckets_.resize(static_cast<size_t>(RoundUp(interval_ms, length_ms_)));
}

void SlidingWindow::Slide(int64_t now_ms) {
  const int64_t begin_ms = now_ms - now_ms % length_ms_;
  const int64_t steps = (begin_ms - begin_ms_) / length_ms_;
  begin_ms_ = begin_ms;
  const auto all = static_cast<int64_t>(buckets_.size());
  // The bucket behind the old one gets what was borrowed, though the window may have lost it.
  for (int64_t i = std::min(steps, all + 1); i > 0; --i) Next();
}

void SlidingWindow::Next() {
  const int64_t lent = lent_by_next();
  current_ = (current_ + 1) % buckets_.size();
  Bucket& bucket = buckets_[current_];
  passed_ += lent - bucket.passed;
  lent_ -= bucket.lent;
  bucket = {.passed = lent};
}

}  // namespace nowcalls::core
