// CatchUp: when what is due may be done after the loop was held up.
//
// Thread: loop. A loop that was stopped (SIGSTOP, a machine that was suspended) or kept busy finds
// deadlines that have passed and, in its sockets, input that had arrived before they did. Whoever
// was in time must not suffer for the server's delay, so what is due waits until that input has
// been taken: until a poll has accepted nobody, since who is accepted is read by the next one only,
// and until no input waits for its turn. It waits for kHoldMsMax at most, or a flood could hold
// deadlines up for ever.
#ifndef NOWCALLS_SERVER_CATCH_UP_H_
#define NOWCALLS_SERVER_CATCH_UP_H_

#include <cstdint>
#include <optional>

#include "base/time.h"

namespace nowcalls::server {

class CatchUp {
 public:
  static constexpr int64_t kLateMs = 100;
  static constexpr int64_t kHoldMsMax = 1'000;

  // The loop polls next, until `wake` at the latest.
  void BeforePoll(Instant wake) { wake_ = wake; }

  // The loop has polled. True: what is due waits for another poll. `more_input`: the last one
  // accepted somebody, or input waits for its turn.
  bool Holds(Instant now, bool more_input) {
    if (!hold_until_) {
      if (now - wake_ <= kLateMs) return false;
      hold_until_ = now + kHoldMsMax;
      return true;
    }
    if (more_input && now < *hold_until_) return true;
    hold_until_.reset();
    return false;
  }

 private:
  Instant wake_ = kNever;
  std::optional<Instant> hold_until_;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CATCH_UP_H_
