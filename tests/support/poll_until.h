// PollUntil: the one way tests wait for something that another process does.
//
// Thread: any. No other test code sleeps (tests/crash apart, where a random moment is the point),
// so that a slow machine makes tests slower but not red.
#ifndef NOWCALLS_SUPPORT_POLL_UNTIL_H_
#define NOWCALLS_SUPPORT_POLL_UNTIL_H_

#include <cstdint>
#include <functional>

namespace nowcalls::testing {

// Long enough for a loaded machine under a sanitizer; only a failing test waits this long.
inline constexpr int64_t kPatienceMs = 30'000;

// Asks `predicate` every few milliseconds until it holds or `timeout_ms` have passed. True: it
// held.
bool PollUntil(int64_t timeout_ms, const std::function<bool()>& predicate);

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_POLL_UNTIL_H_
