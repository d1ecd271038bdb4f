#include "support/poll_until.h"

#include <poll.h>

#include "base/clock.h"

namespace nowcalls::testing {

bool PollUntil(int64_t timeout_ms, const std::function<bool()>& predicate) {
  constexpr int kPauseMs = 3;
  const int64_t deadline_ms = BoottimeMs() + timeout_ms;
  while (!predicate()) {
    if (BoottimeMs() >= deadline_ms) return predicate();
    poll(nullptr, 0, kPauseMs);
  }
  return true;
}

}  // namespace nowcalls::testing
