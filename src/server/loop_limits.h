// Bounds of the server's loop, which the simulator (tests/sim) keeps too.
//
// Thread: any.
#ifndef NOWCALLS_SERVER_LOOP_LIMITS_H_
#define NOWCALLS_SERVER_LOOP_LIMITS_H_

#include <cstdint>

namespace nowcalls::server {

// The longest sleep of the loop. Its timers stand still while the machine is suspended, and the
// ledger clock does not.
inline constexpr int64_t kSleepMsMax = 5'000;
// The same while input waits for a commit.
inline constexpr int64_t kHeldPollMs = 10;
// From SIGTERM on, the server ends after this time, whatever is left.
inline constexpr int64_t kShutdownMsMax = 10'000;
// Requests that are not answered this long after SIGTERM are left unanswered.
inline constexpr int64_t kShutdownWorkMsMax = 2'000;

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_LOOP_LIMITS_H_
