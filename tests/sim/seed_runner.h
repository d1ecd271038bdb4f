// SeedRunner: many seeds, each a run of its own, and what they did together.
//
// Thread: one at a time, in a process without other threads: seeds run in a child. A failed check
// of the product ends that process, and the runner tells which seed it was and goes on behind it.
#ifndef NOWCALLS_SIM_SEED_RUNNER_H_
#define NOWCALLS_SIM_SEED_RUNNER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "sim/faults.h"

namespace nowcalls::sim {

struct SeedTotals {
  uint64_t seeds = 0;
  uint64_t next = 0;  // The seed that is run now.
  uint64_t requests = 0;
  uint64_t granted = 0;
  uint64_t failures = 0;
  FaultCounts faults;
};

// Which seeds are run.
struct SeedChoice {
  uint64_t first = 1;
  uint64_t seeds = 0;     // How many.
  bool clusters = false;  // Of those that have several nodes alone.
};

// `say` is told a text for each seed that failed: the seed, what was violated, the
// command that runs it again; and now and then how far it is.
SeedTotals RunSeeds(const SeedChoice& choice, const std::function<void(const std::string&)>& say);

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SEED_RUNNER_H_
