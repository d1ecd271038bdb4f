// CatchUp: when what is due may be done after the loop was held up.
//
// Thread: loop. A loop that was stopped (SIGSTOP, a suspended machine) or kept busy finds deadlines
// that have passed, and in its sockets input that had arrived before them. While the disk stalls,
// input is left unread too: a connection may have only so many requests unanswered. A client that
// was in time must not suffer for the server's delay. So due work waits until that input has been
// taken: until a poll has brought no more to read, and no input waits for its turn or for a commit.
// While a commit is under way the wait costs nothing: a decision could not be recorded before the
// commit's end. Once the disk and the loop go on, due work waits for kHoldMsMax at most, or a flood
// could hold deadlines up for ever. Work that depends on no waiting input (polled) does not wait
// for the disk, which may hang for good.
#ifndef NOWCALLS_NODE_CATCH_UP_H_
#define NOWCALLS_NODE_CATCH_UP_H_

#include <cstdint>

#include "base/time.h"

namespace nowcalls::node {

class CatchUp {
 public:
  static constexpr int64_t kLateMs = 100;
  static constexpr int64_t kHoldMsMax = 1'000;

  // The loop polls next, until `wake` at the latest.
  void BeforePoll(Instant wake) { wake_ = wake; }

  // The loop has polled. True: due work waits for another poll. `more_input`: there may be more to
  // read at once, or input waits for the server. `stalled`: input waits for a commit that takes
  // longer than kLateMs.
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

  // Whether the loop has polled since it was held up, as the last Holds found it: it then knows of
  // everything that came before its deadlines, except input that waits. True whenever Holds was
  // false.
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
