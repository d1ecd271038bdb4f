// Bounds of the server's loop that the simulator (tests/sim) keeps, too.
//
// Thread: any.
#ifndef NOWCALLS_SERVER_LOOP_LIMITS_H_
#define NOWCALLS_SERVER_LOOP_LIMITS_H_

#include <cstdint>

namespace nowcalls::server {

// The loop's timers stand still while the machine is suspended; the ledger clock does not. So the
// loop looks around so often.
inline constexpr int64_t kSleepMsMax = 5'000;
// And so often while input waits for a commit.
inline constexpr int64_t kHeldPollMs = 10;
// From SIGTERM on: after so long the server ends, whatever is left.
inline constexpr int64_t kDrainMsMax = 10'000;
// A drain does what was read for so long; what is left of it then is not answered.
inline constexpr int64_t kDrainWorkMsMax = 2'000;

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_LOOP_LIMITS_H_
