// FaultInjector: lets go wrong what does so at moments of its own: processes, machines, clocks,
// connections. What goes wrong within something else (a commit, bytes under way) does so there.
//
// Thread: one at a time.
#ifndef NOWCALLS_SIM_FAULT_INJECTOR_H_
#define NOWCALLS_SIM_FAULT_INJECTOR_H_

#include <cstdint>
#include <functional>

#include "base/prng.h"
#include "sim/world.h"

namespace nowcalls::sim {

class FaultInjector {
 public:
  FaultInjector(World* world, uint64_t seed) : world_(world), prng_(seed) {}

  void Begin();
  void Stop() { stopped_ = true; }

 private:
  SimServer& Victim();
  void Every(int64_t mean_ms, const std::function<void()>& fault);
  void EndProcess();
  void StepClock();
  void StepBootClock();
  void BreakLink();

  World* const world_;
  Prng prng_;
  bool stopped_ = false;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_FAULT_INJECTOR_H_
