// Batches: the open commit batch and the one that is being committed, and the moment of the call
// that the engine is in.
//
// Thread: loop. One batch fills while the other is being committed; a sealed batch never changes.
// Every call of the core gets its step from here: the moment and the open batch.
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

  // The moment of the call. An event that the core learns of without a call of its own (a
  // connection that closes at the end of a turn) happens at it.
  void SetNow(Instant now) { now_ = now; }
  Instant now() const { return now_; }

  core::Step Step() { return {now_, &batches_[open_]}; }
  // A step in which the core may decide on due tokens, as many as their pace allows. CountDue
  // follows.
  core::Step StepForDue();
  void CountDue(const core::Step& step);
  // When there is room for due tokens in the open batch; kNever: not before the next batch.
  Instant RoomForDueAt() const;

  // Bytes of the open batch, with the entries of the history that it gets when it is sealed.
  size_t open_bytes() const {
    return batches_[open_].bytes().size() + core_->books().history().unrecorded_bytes();
  }
  // core::Books::looks: what the calls of the core have looked at.
  uint64_t looks() const { return core_->books().looks(); }
  bool full() const { return open_bytes() >= bytes_max_; }

  // The batch whose commit makes all durable that was decided until now; nothing: all is durable.
  std::optional<size_t> Undurable() const {
    if (!batches_[open_].empty()) return open_;
    if (committing_) return sealed();
    return std::nullopt;
  }
  bool committing() const { return committing_; }

  // The next Begin returns a batch even if it has no records: it marks the clock.
  void MarkClock() { mark_clock_ = true; }
  // Seals the open batch at the moment of the call and returns it; it stays as it is until End.
  // nullptr: nothing is to be written, or a commit is under way.
  const ledger::CommitBatch* Begin(const ClockSample& clock, bool may_be_last);
  // The commit is done. Returns which batch it was.
  size_t End();
  // No record waits and no commit is under way.
  bool idle() const { return !committing_ && batches_[open_].empty() && !mark_clock_; }

 private:
  // The batch that is not open: it is being committed, or empty.
  size_t sealed() const { return kCount - 1 - open_; }

  core::Core* const core_;
  const size_t bytes_max_;
  Instant now_{};
  std::array<ledger::CommitBatch, kCount> batches_;
  size_t open_ = 0;
  bool committing_ = false;
  bool mark_clock_ = true;  // At the start.
  // The pace of due tokens: how many may still be decided on at that moment.
  int64_t due_left_;
  Instant due_left_at_{};
  uint32_t due_before_ = 0;  // CommitBatch::due() when the turn began.
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_BATCHES_H_
