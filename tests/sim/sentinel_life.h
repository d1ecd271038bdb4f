// SentinelLife: what a simulated client of Sentinel's frames does all day, by seed.
//
// Thread: one at a time. It asks for calls a second, and takes, keeps and releases tokens. It also
// does what clients should not: it forgets tokens, releases them twice or those of others, sends
// bad frames, and hangs up in the middle of everything.
#ifndef NOWCALLS_SIM_SENTINEL_LIFE_H_
#define NOWCALLS_SIM_SENTINEL_LIFE_H_

#include <cstddef>
#include <cstdint>

#include "base/prng.h"
#include "sim/sim_sentinel.h"
#include "sim/world.h"

namespace nowcalls::sim {

class SentinelLife {
 public:
  SentinelLife(World* world, SimSentinel* client, uint64_t seed);

  void Begin() { ActLater(); }
  // Nothing is begun any more; what has been asked goes on.
  void Stop() { stopped_ = true; }

 private:
  void ActLater();
  void Act();
  bool Leaves();
  void DoSomething();
  void Acquire();
  void Request();
  void EndOrKeep();

  World* const world_;
  SimSentinel* const client_;
  Prng prng_;
  bool stopped_ = false;

  // The character of this client.
  int64_t pace_us_;
  size_t held_max_;
  uint64_t calls_percent_;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SENTINEL_LIFE_H_
