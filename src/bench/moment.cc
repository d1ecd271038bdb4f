#include "bench/moment.h"

#include "base/clock.h"

namespace nowcalls::bench {
namespace {

constexpr int64_t kMsNs = 1'000'000;

}  // namespace

Moment Now() {
  // The wall clock is read once a process; a moment costs one reading from then on.
  static const int64_t wall_ahead_ns = WallMs() * kMsNs - MonotonicNs();
  const int64_t ns = MonotonicNs();
  return {ns, (ns + wall_ahead_ns) / kMsNs};
}

}  // namespace nowcalls::bench
