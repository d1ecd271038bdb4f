// Batches: the open commit batch, the one being committed, and the moment of the call.
//
// Thread: loop. A sealed batch never changes.
#ifndef NOWCALLS_ENGINE_BATCHES_H_
#define NOWCALLS_ENGINE_BATCHES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/books.h"
#include "core/core.h"
#include "ledger/commit_batch.h"

namespace nowcalls::engine {

class Batches {
 public:
  static constexpr size_t kCount = 2;

  Batches(core::Core* core, const Limits& limits);

  void SetNow(Instant now) { now_ = now; }  // The moment of the call and all that follows from it.
  Instant now() const { return now_; }

  core::Step Step() { return {now_, &batches_[open_]}; }
  // With the due tokens that the pace allows. CountDue follows.
  core::Step StepForDue();
  void CountDue(const core::Step& step);
  // Room in the open batch; kNever: not before the next batch.
  Instant RoomForDueAt() const;

  // With the history entries that the seal adds.
  size_t open_bytes() const {
    return batches_[open_].bytes().size() + core_->books().history().unrecorded_bytes();
  }
  uint64_t looks() const { return core_->books().looks(); }
  bool full() const { return open_bytes() >= bytes_max_; }

  // The batch whose commit makes all durable; nullopt: all is.
  std::optional<size_t> Undurable() const {
    if (!batches_[open_].empty()) return open_;
    if (committing_) return sealed();
    return std::nullopt;
  }
  bool committing() const { return committing_; }

  void MarkClock() { mark_clock_ = true; }  // The next Begin returns a batch even without records.
  // Engine::BeginCommit, at now(); valid until End.
  const ledger::CommitBatch* Begin(const ClockSample& clock, bool may_be_last);
  size_t End();  // The commit is done. Returns the index of its batch.
  bool idle() const { return !committing_ && batches_[open_].empty() && !mark_clock_; }

 private:
  size_t sealed() const { return kCount - 1 - open_; }  // Being committed, or empty.

  core::Core* const core_;
  const size_t bytes_max_;
  Instant now_{};
  std::array<ledger::CommitBatch, kCount> batches_;
  size_t open_ = 0;
  bool committing_ = false;
  bool mark_clock_ = true;  // At the start.
  int64_t due_left_;        // Due tokens that the pace allowed at due_left_at_.
  Instant due_left_at_{};
  uint32_t due_before_ = 0;  // CommitBatch::due() when the step began.
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_BATCHES_H_
