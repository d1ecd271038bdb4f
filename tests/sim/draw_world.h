// What a seed makes of a world: its faults, the server's options and limits, the rules.
//
// Thread: any. Options are drawn so that what is rare in practice happens often: small batches,
// few keys a sweep, short queues.
#ifndef NOWCALLS_SIM_DRAW_WORLD_H_
#define NOWCALLS_SIM_DRAW_WORLD_H_

#include <cstdint>

#include "sim/world.h"

namespace nowcalls::sim {

WorldOptions DrawWorld(uint64_t seed, Sabotage sabotage, bool keeps_lines);

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_DRAW_WORLD_H_
