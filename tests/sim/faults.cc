#include "sim/faults.h"

namespace nowcalls::sim {
namespace {

constexpr std::array<std::string_view, kFaultCount> kNames = {
    "crash",
    "reboot",
    "terminate",
    "commit slow",
    "commit failed",
    "commit failed with effect",
    "scan failed",
    "server stall",
    "clock step",
    "reset",
    "vanish",
    "network stall",
    "split bytes",
    "slow reader",
    "client pause",
    "client ends",
    "batches lost",
    "boot clock step",
    "deposed",
    "standby crash",
    "crash while recovering",
    "stall while recovering",
    "request lost",
    "request late",
    "answer lost",
    "stale read",
    "cut off",
    "lease ends early",
    "answer late",
    "stale claim",
    "old writer",
    "writes lost",
};

// Absent from one seed in three.
uint32_t Chance(Prng* prng, int64_t parts_max) {
  return prng->Below(3) == 0 ? 0 : static_cast<uint32_t>(prng->Between(1, parts_max));
}

int64_t Every(Prng* prng, int64_t ms_min, int64_t ms_max) {
  return prng->Below(3) == 0 ? 0 : prng->Between(ms_min, ms_max);
}

}  // namespace

std::string_view FaultName(Fault fault) { return kNames[static_cast<size_t>(fault)]; }

void FaultCounts::Add(const FaultCounts& other) {
  for (size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
}

FaultPlan DrawFaultPlan(Prng* prng) {
  FaultPlan plan;
  plan.process_every_ms = Every(prng, 500, 15'000);
  plan.reboot_chance = Chance(prng, 500'000);
  plan.terminate_chance = Chance(prng, 300'000);
  plan.down_ms_max = prng->Below(2) == 0 ? 100 : 6'000;
  plan.commit_slow_chance = Chance(prng, 30'000);
  plan.commit_slow_ms_max = prng->Between(10, 3'000);
  plan.commit_failed_chance = Chance(prng, 3'000);
  plan.scan_failed_chance = Chance(prng, 10'000);
  plan.server_stall_every_ms = Every(prng, 2'000, 20'000);
  plan.server_stall_ms_max = prng->Between(100, 5'000);
  plan.clock_step_every_ms = Every(prng, 1'000, 20'000);
  plan.reset_every_ms = Every(prng, 300, 10'000);
  plan.vanish_chance = Chance(prng, 200'000);
  plan.network_stall_chance = Chance(prng, 20'000);
  plan.network_stall_ms_max = prng->Between(10, 8'000);
  plan.split_chance = Chance(prng, 800'000);
  plan.slow_reader_chance = Chance(prng, 300'000);
  plan.client_pause_chance = Chance(prng, 10'000);
  plan.client_pause_ms_max = prng->Between(1'000, 15'000);
  plan.client_ends_chance = Chance(prng, 20'000);
  plan.network_delay_us_max = prng->Below(2) == 0 ? 500 : prng->Between(1'000, 50'000);
  plan.commit_us_max = prng->Below(2) == 0 ? 500 : prng->Between(1'000, 30'000);
  plan.turn_us_max = prng->Below(2) == 0 ? 20 : prng->Between(20, 5'000);
  return plan;
}

}  // namespace nowcalls::sim
