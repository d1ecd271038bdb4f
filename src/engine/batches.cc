#include "engine/batches.h"

#include <algorithm>

#include "base/check.h"

namespace nowcalls::engine {
namespace {

// Due tokens that get an end or a new deadline: in a millisecond, in a burst, in one batch. See
// "Due tokens have a pace" in README.md.
constexpr int64_t kDuePerMs = 700;
constexpr int64_t kDueAtOnce = 5 * kDuePerMs;
constexpr uint32_t kDuePerBatchMax = 4000;

}  // namespace

Batches::Batches(core::Core* core, const Limits& limits)
    : core_(core), bytes_max_(limits.batch_bytes_max), due_left_(kDueAtOnce) {}

core::Step Batches::StepForDue() {
  core::Step step = Step();
  // A bucket that fills with the engine's own time, so that the same calls end the same tokens.
  const int64_t passed_ms = std::min(now_ - due_left_at_, kDueAtOnce / kDuePerMs);
  due_left_ = std::min(due_left_ + passed_ms * kDuePerMs, kDueAtOnce);
  due_left_at_ = now_;
  // due() counts since the batch was opened; CountDue charges only what this step adds.
  due_before_ = step.batch->due();
  step.due_max = std::min(due_before_ + static_cast<uint32_t>(due_left_), kDuePerBatchMax);
  return step;
}

void Batches::CountDue(const core::Step& step) { due_left_ -= step.batch->due() - due_before_; }

Instant Batches::RoomForDueAt() const {
  // A full batch takes no more, whatever time passes: BeginCommit opens the next.
  if (batches_[open_].due() >= kDuePerBatchMax) return kNever;
  return due_left_ > 0 ? due_left_at_ : due_left_at_ + 1;
}

const ledger::CommitBatch* Batches::Begin(const ClockSample& clock, bool may_be_last) {
  // Group commit: what arrives during a commit shares the next batch and its sync.
  if (committing_) return nullptr;
  // A batch without records is written only to mark the clock.
  const bool mark = mark_clock_ || core_->NextMark() <= now_;
  if (batches_[open_].empty() && !mark) return nullptr;
  mark_clock_ = false;
  // The seal's records belong to this batch: seal first, then open the other.
  core_->Seal(Step(), clock, may_be_last);
  committing_ = true;
  open_ = sealed();
  NOWCALLS_CHECK(batches_[open_].empty());
  return &batches_[sealed()];
}

size_t Batches::End() {
  NOWCALLS_CHECK(committing_);
  committing_ = false;
  batches_[sealed()].Clear();
  return sealed();
}

}  // namespace nowcalls::engine
