#include "core/seals.h"

#include <algorithm>
#include <utility>

namespace nowcalls::core {
namespace {

// How often the clock mark is renewed, and how far the watermark moves before it is written.
constexpr int64_t kMarkEveryMs = 1000;
constexpr int64_t kIdleMarkMs = 60'000;

}  // namespace

Instant Seals::NextMark() const { return Instant{clock_marked_ms_.value_or(0) + kIdleMarkMs}; }

void Seals::Seal(const Step& step, const ClockSample& clock, bool may_be_last) {
  if (format_to_set_) step.batch->FormatSet(*std::exchange(format_to_set_, std::nullopt));
  if (may_be_last || !clock_marked_ms_ || step.now.ms - *clock_marked_ms_ >= kMarkEveryMs) {
    clock_marked_ms_ = step.now.ms;
    step.batch->ClockMarked({step.now.ms, clock});
  }
  // Later tokens have deadlines after now, so the watermark may not pass it.
  const DeadlineCounter& deadlines = books_->deadlines();
  const int64_t bound_ms =
      deadlines.empty() ? step.now.ms : std::min(step.now.ms, deadlines.lowest_ms());
  if (!watermark_ms_ || bound_ms >= *watermark_ms_ + kMarkEveryMs) {
    watermark_ms_ = bound_ms;
    step.batch->WatermarkRaised(bound_ms);
  }
  books_->history().Record(step.batch);
  step.batch->Sealed(books_->NextSeal(step.now.ms));
}

}  // namespace nowcalls::core
