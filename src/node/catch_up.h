// CatchUp: makes due work wait for earlier input when the loop was held up.
//
// Thread: loop.
//
// The loop is late if it wakes kLateMs after its plan (SIGSTOP, a suspended machine), and stalled
// while input waits for a slow commit. Due work then waits until all earlier input is taken, or
// disk and loop have gone on for kHoldMsMax. Work that depends on no waiting input needs polled()
// alone.
#ifndef NOWCALLS_NODE_CATCH_UP_H_
#define NOWCALLS_NODE_CATCH_UP_H_

#include <cstdint>
#include <utility>

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
    const int64_t passed_ms = now - std::exchange(held_at_, now);
    if (!holding_) {
      holding_ = late || stalled;
      until_ = now + kHoldMsMax;
      return holding_;
    }
    // A stall takes nothing from the limit. A late turn takes kLateMs, or a loop that is late at
    // each turn would never come to its end.
    if (stalled) {
      until_ = until_ + passed_ms;
    } else if (late) {
      until_ = until_ + (passed_ms - kLateMs);
    }
    holding_ = (more_input || stalled || !polled_) && now < until_;
    if (!holding_) polled_ = true;
    return holding_;
  }

  // Since the last Holds all input before the deadlines is known, except input that waits. True
  // whenever Holds was false.
  bool polled() const { return polled_; }

 private:
  Instant wake_ = kNever;
  bool holding_ = false;
  Instant held_at_{0};  // Of the last Holds.
  Instant until_{0};    // While holding_.
  bool polled_ = true;
};

}  // namespace nowcalls::node

#endif  // NOWCALLS_NODE_CATCH_UP_H_
