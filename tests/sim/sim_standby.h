// SimStandby: a node of a simulated cluster that does not lead. It follows the log at its own pace.
//
// Thread: one at a time. The real node::Standby on the store of its node, driven as by
// member::Follower. It may be killed at any moment: what it has applied is in the tables.
#ifndef NOWCALLS_SIM_SIM_STANDBY_H_
#define NOWCALLS_SIM_SIM_STANDBY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "base/prng.h"
#include "ledger/clock.h"
#include "node/standby.h"
#include "nowcalls/status.h"
#include "sim/faults.h"
#include "sim/sim_server.h"
#include "sim/sim_store.h"
#include "sim/stale_log.h"
#include "sim/timeline.h"

namespace nowcalls::sim {

class SimStandby {
 public:
  struct Watch {
    std::function<void()> caught_up;               // It has taken over, and read the whole log.
    std::function<void(const Status&)> refused{};  // The log, or the tables.
  };

  // All outlive it.
  SimStandby(const ServerWorld& world, uint64_t seed)
      : timeline_(world.timeline),
        plan_(world.plan),
        faults_(world.faults),
        machine_(world.machine),
        shared_(world.shared),
        store_(world.store),
        log_(world.store),
        prng_(seed) {}

  void SetWatch(Watch watch) { watch_ = std::move(watch); }
  // A takeover does not see the last batch of the log.
  void MissLast() { misses_last_ = true; }

  // `seal_ms`: ledger time of the tables' last batch, or 0.
  void Begin(int64_t seal_ms);
  // Has the claim of `term`. REQUIRES: stands_by().
  void TakeOver(uint64_t term);
  void ReadOn() { FollowSoon(); }  // There is more than it has seen.
  void End();                      // It leads, or was killed.

  bool stands_by() const { return IsIn(node::Phase::kStandby); }
  bool recovers() const { return IsIn(node::Phase::kRecovering); }
  const ledger::ObservedTime& observed() const { return observed_; }

 private:
  bool IsIn(node::Phase phase) const { return standby_ && standby_->phase() == phase; }
  void FollowSoon();
  void Follow();
  Status Admit() const;
  void Observe();

  Timeline* const timeline_;
  const FaultPlan* const plan_;
  FaultCounts* const faults_;
  const Machine* const machine_;
  SharedLog* const shared_;
  SimStore* const store_;
  StaleLog log_;
  Prng prng_;
  Watch watch_;
  bool misses_last_ = false;
  std::optional<node::Standby> standby_;
  int64_t seal_ms_ = 0;
  bool saw_writer_ = false;
  ledger::ObservedTime observed_;
  uint64_t plans_ = 0;  // Only the last plan to follow counts.
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SIM_STANDBY_H_
