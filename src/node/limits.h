// Bounds of a turn, whoever drives it.
//
// Thread: any.
#ifndef NOWCALLS_NODE_LIMITS_H_
#define NOWCALLS_NODE_LIMITS_H_

#include <cstdint>

namespace nowcalls::node {

// The longest sleep of the loop. Its timers stand still while the machine is suspended, and the
// ledger clock does not.
inline constexpr int64_t kSleepMsMax = 5'000;
// The same while input waits for a commit.
inline constexpr int64_t kHeldPollMs = 10;
// An end takes at most this long, whatever is left.
inline constexpr int64_t kEndMsMax = 10'000;
// Requests that are not answered this long after an end began are left unanswered.
inline constexpr int64_t kEndWorkMsMax = 2'000;

}  // namespace nowcalls::node

#endif  // NOWCALLS_NODE_LIMITS_H_
