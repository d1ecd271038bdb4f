#include "sim/fault_injector.h"

#include <vector>

namespace nowcalls::sim {

void FaultInjector::Begin() {
  const FaultPlan& plan = world_->options().plan;
  Every(plan.process_every_ms, [this] { EndProcess(); });
  Every(plan.reset_every_ms, [this] { BreakLink(); });
  Every(plan.clock_step_every_ms, [this] { StepClock(); });
  Every(plan.boot_step_every_ms, [this] { StepBootClock(); });
  Every(plan.claim_every_ms, [this] { world_->cluster().Depose(prng_.Below(2) == 0); });
  Every(plan.cut_off_every_ms, [this] {
    const int64_t ms_max = world_->options().plan.cut_off_ms_max;
    Victim().CutOff(prng_.Between(1, ms_max) * kMs);
  });
  Every(plan.server_stall_every_ms, [this] {
    const int64_t ms_max = world_->options().plan.server_stall_ms_max;
    Victim().Stall(prng_.Between(1, ms_max) * kMs);
  });
}

// The server that leads, or one that believes so.
SimServer& FaultInjector::Victim() {
  const std::vector<size_t> serving = world_->cluster().Serving();
  if (serving.size() < 2) return world_->server();
  return world_->cluster().server(serving[prng_.Below(serving.size())]);
}

void FaultInjector::Every(int64_t mean_ms, const std::function<void()>& fault) {
  if (mean_ms == 0) return;
  world_->timeline().After(prng_.Between(1, 2 * mean_ms) * kMs, [this, mean_ms, fault] {
    if (stopped_) return;
    fault();
    Every(mean_ms, fault);
  });
}

// Somewhere in the next turns.
void FaultInjector::EndProcess() {
  constexpr int64_t kCallsMax = 60;
  const FaultPlan& plan = world_->options().plan;
  const auto calls = static_cast<int>(prng_.Between(0, kCallsMax));
  if (world_->options().nodes > 1 && prng_.ChancePerMillion(plan.other_crash_chance)) {
    return world_->cluster().KillOther(prng_.ChancePerMillion(plan.reboot_chance));
  }
  SimServer& victim = Victim();
  if (prng_.ChancePerMillion(plan.terminate_chance)) {
    victim.Terminate();
  } else if (prng_.ChancePerMillion(plan.reboot_chance)) {
    victim.RebootSoon(calls);
  } else {
    victim.KillSoon(calls);
  }
}

void FaultInjector::StepClock() {
  constexpr int64_t kHourMs = 3'600'000;
  constexpr int64_t kYearMs = 365 * 24 * kHourMs;
  const int64_t far_ms = prng_.Below(4) == 0 ? 10 * kYearMs : kHourMs;
  world_->faults().Count(Fault::kClockStep);
  const size_t nodes = world_->cluster().size();
  const size_t number = nodes == 1 ? 0 : prng_.Below(nodes);
  world_->cluster().machine(number).StepWall(prng_.Between(-far_ms, far_ms));
}

void FaultInjector::StepBootClock() {
  constexpr int64_t kFarMs = 5'000;
  const int64_t most_ms = prng_.Below(2) == 0 ? 5 : kFarMs;
  world_->server().StepBootClockBack(prng_.Between(1, most_ms));
}

void FaultInjector::BreakLink() {
  const std::vector<LinkId> open = world_->network().OpenLinks();
  if (open.empty()) return;
  const LinkId link = open[prng_.Below(open.size())];
  if (prng_.ChancePerMillion(world_->options().plan.vanish_chance)) {
    world_->faults().Count(Fault::kVanish);
    world_->trace().Add("network: a host vanishes, link ", link);
    world_->network().Vanish(link);
  } else {
    world_->faults().Count(Fault::kReset);
    world_->trace().Add("network: link ", link, " breaks");
    world_->network().Break(link);
  }
}

}  // namespace nowcalls::sim
