// One run from one seed: a world with faults, then a world without, which must come to rest.
//
// Thread: one at a time; no state outlives a call. Besides what the oracle holds (oracle.h):
//
//   I7 when the faults end, every request on a connection that stands is answered; when every
//      deadline has passed, the ledger is empty, and every flow grants its level again
#ifndef NOWCALLS_SIM_SIMULATION_H_
#define NOWCALLS_SIM_SIMULATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "sim/faults.h"
#include "sim/saboteur.h"

namespace nowcalls::sim {

struct RunOptions {
  uint64_t seed = 0;
  Sabotage sabotage = Sabotage::kNone;
  bool keeps_lines = false;
};

struct RunResult {
  uint64_t hash = 0;
  uint64_t requests = 0;
  uint64_t granted = 0;
  FaultCounts faults;
  std::vector<std::string> violations;
  std::vector<std::string> lines;
};

RunResult Run(const RunOptions& options);

// Whether the seed has several nodes.
bool HasCluster(uint64_t seed);

// The command that runs a seed again.
std::string ReplayCommand(uint64_t seed);

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SIMULATION_H_
