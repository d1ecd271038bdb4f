// CatchUp: makes due work wait for earlier input when the loop was held up.
//
// Thread: loop.
//
// The loop is late if it wakes kLateMs after its plan (SIGSTOP, a suspended machine), and stalled
// while input waits for a slow commit. Due work then waits until all earlier input is taken. It
// waits kHoldMsMax at most once disk and loop go on, or a flood could delay it for ever. Work that
// depends on no waiting input needs polled() alone.
#ifndef NOWCALLS_NODE_CATCH_UP_H_
#define NOWCALLS_NODE_CATCH_UP_H_

#include <cstdint>

#include "base/time.h"

namespace nowcalls::node {

class CatchUp {
 public:
  static constexpr int64_t kLateMs = 100;
  static constexpr int64_t kHoldMsMax = 1'000;

  // Before a poll that ends at `wake`.
  void BeforePoll(Instant wake) { wake_ = wake; }

  // After it. True: due work waits for another poll. `more_input`: more can be read at once, or
  // input waits for the server. `stalled`: input waits for a commit older than kLateMs.
  bool Holds(Instant now, bool more_input, bool stalled) {
    const bool late = now - wake_ > kLateMs;
    polled_ = !late || !polled_;  // One poll is enough, also for a loop that is late at each turn.
    if (stage_ == Stage::kNone) {
      if (!stalled && !late) return false;
      Begin(stalled ? Stage::kStalled : Stage::kReading, now);
      return true;
    }
    if (stage_ == Stage::kStalled) {
      if (stalled) return true;
      Begin(Stage::kReading, now);
    }
    if ((more_input || stalled || !polled_) && now < until_) return true;
    stage_ = Stage::kNone;
    polled_ = true;
    return false;
  }

  // Since the last Holds all input before the deadlines is known, except input that waits. True
  // whenever Holds was false.
  bool polled() const { return polled_; }

 private:
  enum class Stage : uint8_t { kNone, kStalled, kReading };

  void Begin(Stage stage, Instant now) {
    stage_ = stage;
    until_ = now + kHoldMsMax;
  }

  Instant wake_ = kNever;
  Stage stage_ = Stage::kNone;
  Instant until_{0};  // Of kReading.
  bool polled_ = true;
};

}  // namespace nowcalls::node

#endif  // NOWCALLS_NODE_CATCH_UP_H_
