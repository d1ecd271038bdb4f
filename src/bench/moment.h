// Moment: one reading of the clocks.
//
// Thread: any. The wall clock is read once a process; from then on it advances with MonotonicNs, so
// that a moment costs one reading, and a clock that is set does not tear a run.
#ifndef NOWCALLS_BENCH_MOMENT_H_
#define NOWCALLS_BENCH_MOMENT_H_

#include <cstdint>

namespace nowcalls::bench {

struct Moment {
  int64_t ns = 0;  // MonotonicNs.
  int64_t wall_ms = 0;
};

Moment Now();

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_MOMENT_H_
