// Bounds of a turn.
//
// Thread: any.
#ifndef NOWCALLS_NODE_LIMITS_H_
#define NOWCALLS_NODE_LIMITS_H_

#include <cstdint>

namespace nowcalls::node {

// The longest sleep: a suspended machine stops timers, not the ledger clock.
inline constexpr int64_t kSleepMsMax = 5'000;
// While input waits for a commit.
inline constexpr int64_t kHeldPollMs = 10;
// Bound of an end.
inline constexpr int64_t kEndMsMax = 10'000;
// Requests without an answer so long after an end began get none.
inline constexpr int64_t kEndWorkMsMax = 2'000;

}  // namespace nowcalls::node

#endif  // NOWCALLS_NODE_LIMITS_H_
