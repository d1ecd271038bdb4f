// AdminLife: what a simulated operator does, by seed: changes levels, removes rules while tokens
// are out, drains, reclaims, purges.
//
// Thread: one at a time.
#ifndef NOWCALLS_SIM_ADMIN_LIFE_H_
#define NOWCALLS_SIM_ADMIN_LIFE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/prng.h"
#include "sim/world.h"

namespace nowcalls::sim {

class AdminLife {
 public:
  AdminLife(World* world, uint64_t seed);

  void Begin() { ActLater(); }
  // All rules as they were in the beginning, and no drains; again until it is answered.
  void Restore();
  bool restored() const { return restoring_ && to_restore_.empty(); }

 private:
  void ActLater();
  void Act();
  void Change();
  void ContinueRestoring();

  World* const world_;
  Prng prng_;
  const std::vector<SimRule> initial_rules_;
  std::vector<std::string> name_spaces_;
  int64_t pace_us_;
  size_t loaded_ = 0;  // Namespaces that have their first rules.
  bool restoring_ = false;
  bool asked_ = false;  // The first of to_restore_.
  std::vector<std::function<void()>> to_restore_;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_ADMIN_LIFE_H_
