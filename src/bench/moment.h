// Moment: one reading of the clocks.
//
// Thread: any. wall_ms advances with MonotonicNs from its first reading.
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
