#include "core/seals.h"

#include <algorithm>
#include <utility>

namespace nowcalls::core {
namespace {

// How often the clock mark is renewed, and how far the watermark moves before it is written. An
// idle process writes a mark each minute.
constexpr int64_t kMarkEveryMs = 1000;
constexpr int64_t kIdleMarkMs = 60'000;

}  // namespace

Instant Seals::NextMark() const { return Instant{clock_marked_ms_.value_or(0) + kIdleMarkMs}; }

// Records what the load of an earlier format left to do. A flow erased since the load has left the
// record without its rule.
void Seals::RecordFirst(const Step& step) {
  if (!first_) return;
  const FirstRecords records = *std::exchange(first_, std::nullopt);
  if (records.format) step.batch->FormatSet(*records.format);
  const FlowTable& flows = books_->flows();
  for (const FlowKey& key : records.rules) {
    const FlowSlot slot = flows.Find(key);
    if (slot != kNoFlow) books_->RecordRule(step, flows.at(slot));
  }
  for (const FlowKey& key : records.idle) {
    const FlowSlot slot = flows.Find(key);
    const bool idle = slot != kNoFlow && flows.at(slot).removed && flows.at(slot).tokens.size == 0;
    if (idle) books_->EraseFlow(step, slot);
  }
}

void Seals::Seal(const Step& step, const ClockSample& clock, bool may_be_last) {
  RecordFirst(step);
  // Once a second, and in any case in what may be the last batch of the process.
  if (may_be_last || !clock_marked_ms_ || step.now.ms - *clock_marked_ms_ >= kMarkEveryMs) {
    clock_marked_ms_ = step.now.ms;
    step.batch->ClockMarked({step.now.ms, clock});
  }
  // The least deadline of live tokens, uncommitted ones included. Later tokens have deadlines after
  // now, so the watermark may not pass now.
  const DeadlineCounter& deadlines = books_->deadlines();
  const int64_t bound_ms =
      deadlines.empty() ? step.now.ms : std::min(step.now.ms, deadlines.lowest_ms());
  if (!watermark_ms_ || bound_ms >= *watermark_ms_ + kMarkEveryMs) {
    watermark_ms_ = bound_ms;
    step.batch->WatermarkRaised(bound_ms);
  }
  // The history goes with the ends that this batch records; the seal is over all before it.
  history_->Record(step.batch);
  step.batch->Sealed(books_->NextSeal(step.now.ms), books_->options().term);
}

}  // namespace nowcalls::core
