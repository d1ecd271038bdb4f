// What a simulated client asks for when it asks for calls a second, by seed.
//
// Thread: any.
#ifndef NOWCALLS_SIM_DRAW_CALLS_H_
#define NOWCALLS_SIM_DRAW_CALLS_H_

#include <cstdint>
#include <vector>

#include "base/prng.h"
#include "sim/sim_rules.h"

namespace nowcalls::sim {

struct CallsWanted {
  int64_t flow = 0;
  std::vector<int64_t> lanes{};  // The values' (lanes.h); empty: the request names none.
  int64_t count = 1;
  bool prioritized = false;
  bool misfit = false;  // It should name values and does not, or the reverse.
};

// Often so many calls that a few requests fill the window. REQUIRES: there are rules.
CallsWanted DrawCalls(const std::vector<SimRule>& rules, Prng* prng);

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_DRAW_CALLS_H_
