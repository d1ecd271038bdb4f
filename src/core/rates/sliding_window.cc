#include "core/rates/sliding_window.h"

#include <algorithm>

namespace nowcalls::core {
namespace {

int64_t RoundUp(int64_t dividend, int64_t divisor) { return (dividend + divisor - 1) / divisor; }

}  // namespace

SlidingWindow::SlidingWindow(int64_t interval_ms, int32_t buckets) : interval_ms_(interval_ms) {
  const auto wanted = std::min<int64_t>({buckets, kBucketsMax, interval_ms});
  // Whole milliseconds: the buckets may cover a little more than the interval.
  length_ms_ = RoundUp(interval_ms, wanted);
  passed_.resize(static_cast<size_t>(RoundUp(interval_ms, length_ms_)));
}

void SlidingWindow::Borrow(int64_t count) {
  // Most windows never lend, and save the second array.
  if (borrowed_.empty()) borrowed_.resize(passed_.size());
  borrowed_[current_] += count;
  borrowed_sum_ += count;
}

bool SlidingWindow::Restore(int64_t begin_ms, int64_t passed, int64_t borrowed) {
  // Buckets of another length, or out of order.
  if (begin_ms % length_ms_ != 0 || begin_ms < begin_ms_) return false;
  Advance(begin_ms);
  // Advance has put there what the bucket before borrowed; `passed` has that, too.
  Add(passed - passed_[current_]);
  if (borrowed > 0) Borrow(borrowed);
  return true;
}

void SlidingWindow::Slide(int64_t now_ms) {
  const int64_t begin_ms = now_ms - now_ms % length_ms_;
  const int64_t steps = (begin_ms - begin_ms_) / length_ms_;
  begin_ms_ = begin_ms;
  // One step beyond a whole window: the bucket after the current one gets what was borrowed, also
  // if the window is past it by now.
  for (auto i = std::min(steps, static_cast<int64_t>(passed_.size()) + 1); i > 0; --i) BeginNext();
}

void SlidingWindow::BeginNext() {
  const int64_t borrowed = borrowed_from_next();
  current_ = After(current_);
  sum_ += borrowed - passed_[current_];
  passed_[current_] = borrowed;
  if (borrowed_.empty()) return;
  borrowed_sum_ -= borrowed_[current_];
  borrowed_[current_] = 0;
}

}  // namespace nowcalls::core
