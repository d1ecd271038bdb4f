#include "sim/draw_world.h"

#include <iterator>
#include <memory>
#include <utility>

#include "sim/lanes.h"

namespace nowcalls::sim {
namespace {

template <typename T>
T OneOf(Prng* prng, T usual, T rare) {
  return prng->Below(3) == 0 ? rare : usual;
}

Limits DrawLimits(Prng* prng) {
  Limits limits;
  limits.tokens_max = OneOf<uint32_t>(prng, limits.tokens_max, 12);
  limits.requests_in_flight_max = OneOf<uint32_t>(prng, limits.requests_in_flight_max, 2);
  limits.batch_bytes_max = OneOf<size_t>(prng, limits.batch_bytes_max, 400);
  limits.waiters_per_rule_max = OneOf<uint32_t>(prng, limits.waiters_per_rule_max, 2);
  limits.waiters_per_connection_max = OneOf<uint32_t>(prng, limits.waiters_per_connection_max, 2);
  limits.cancels_per_session_max = OneOf<uint32_t>(prng, limits.cancels_per_session_max, 2);
  limits.history_max =
      OneOf<uint32_t>(prng, limits.history_max, static_cast<uint32_t>(prng->Below(6)));
  return limits;
}

core::CoreOptions DrawCore(Prng* prng) {
  core::CoreOptions options;
  options.limits = DrawLimits(prng);
  options.token_id_key = {prng->Next(), prng->Next()};
  options.restart_grace_ms = OneOf<int64_t>(prng, 10'000, prng->Between(0, 3'000));
  options.mass_expiry.sessions_min = OneOf<uint32_t>(prng, 10, 2);
  options.mass_expiry_factor = static_cast<double>(prng->Between(1, 5));
  options.resource_timeout_factor = static_cast<double>(prng->Between(4, 6)) / 2;
  options.sweep_interval_ms = OneOf<int64_t>(prng, 100, prng->Between(1, 1'000));
  options.sweep_keys_max = OneOf<uint32_t>(prng, 1'000, static_cast<uint32_t>(prng->Between(1, 4)));
  options.sweep_budget_us = 0;  // It would be measured by the real clock.
  options.grants_per_call_max = OneOf<uint32_t>(prng, 1'000, 1);
  if (prng->Below(5) == 0) options.expire_strategy = std::make_shared<StrictExpireStrategy>();
  return options;
}

std::vector<SimRule> DrawRules(Prng* prng) {
  std::vector<SimRule> rules(static_cast<size_t>(prng->Between(1, 4)));
  for (size_t i = 0; i < rules.size(); ++i) {
    SimRule& rule = rules[i];
    rule.flow = static_cast<int64_t>(i) + 1;
    rule.name_space = prng->Below(3) == 0 ? "default" : "shop";
    rule.for_each_session = prng->Below(3) == 0;
    rule.count = rule.for_each_session ? static_cast<double>(prng->Between(10, 32)) / 10
                                       : static_cast<double>(prng->Between(1, 12));
    rule.resource_timeout_ms = 2 * prng->Between(50, 2'500);
    rule.client_offline_ms = prng->Between(50, 5'000);
    rule.client_cap = prng->Below(3) == 0 ? prng->Between(1, 4) : 0;
    rule.shadow = prng->Below(8) == 0;
    rule.queues = prng->Below(2) == 0;
  }
  return rules;
}

// Half of the rules have a window that is in the ledger.
void DrawWindow(SimRule* rule, Prng* prng) {
  constexpr int64_t kWindowsMs[] = {500, 1'000, 1'000, 3'000, 10'000, 10'000, 12'000, 20'000};
  rule->window_ms = kWindowsMs[prng->Below(std::size(kWindowsMs))];
  constexpr int64_t kSamples[] = {1, 2, 5, 20};
  rule->samples = OneOf<int64_t>(prng, 10, kSamples[prng->Below(std::size(kSamples))]);
}

// By a stream of its own: most of the simulated clients do not look at it.
void DrawClientHalf(SimRule* rule, Prng* prng) {
  rule->refuse_strategy = prng->Between(0, 2);
  rule->timeout_strategy = prng->Between(0, 2);
  rule->falls_back = prng->Below(2) == 0;
}

// Some flow ids have a rule of the flow and one by value: a rule takes the number of the one before
// if that is of the other kind.
void DrawPairs(std::vector<SimRule>* rules, Prng* prng) {
  for (size_t i = 1; i < rules->size(); ++i) {
    SimRule& before = (*rules)[i - 1];
    SimRule& rule = (*rules)[i];
    if (prng->Below(2) == 0 || HasRule(*rules, before.flow, rule.kind())) continue;
    rule.flow = before.flow;
  }
}

bool NeedsCluster(Sabotage sabotage) {
  return sabotage == Sabotage::kDeposedAnswers || sabotage == Sabotage::kLastBatchMissed ||
         sabotage == Sabotage::kClaimNotCompared || sabotage == Sabotage::kNoFence ||
         sabotage == Sabotage::kForeignClock || sabotage == Sabotage::kTxnNotAwaited;
}

// A sabotage that shows at a rare fault alone would cost minutes of seeds that find nothing.
void Provoke(Sabotage sabotage, FaultPlan* plan) {
  if (sabotage == Sabotage::kUnnoticedReboot) {
    plan->process_every_ms = 3'000;
    plan->reboot_chance = 1'000'000;
    plan->unsynced = true;
    plan->sync_every_ms = 1'000;
  } else if (sabotage == Sabotage::kFenceReused) {
    plan->process_every_ms = 1'000;
  } else if (sabotage == Sabotage::kNoFence) {
    plan->cut_off_every_ms = 3'000;
    plan->cut_off_ms_max = 8'000;
  } else if (NeedsCluster(sabotage)) {
    plan->claim_every_ms = 1'000;
  }
}

// One seed in three has a cluster.
void DrawCluster(WorldOptions* options, Prng* prng) {
  const bool is_drawn = prng->Below(3) == 0 && options->sabotage != Sabotage::kUnnoticedReboot;
  if (!is_drawn && !NeedsCluster(options->sabotage)) return;
  options->nodes = static_cast<size_t>(prng->Between(2, 3));
  FaultPlan& plan = options->plan;
  plan.boot_step_every_ms = 0;  // A lease cannot be judged by a clock that goes back.
  plan.unsynced = false;
  plan.sync_every_ms = 0;
  plan.claim_every_ms = prng->Below(4) == 0 ? 0 : prng->Between(200, 10'000);
  plan.other_crash_chance = static_cast<uint32_t>(prng->Below(700'000));
  plan.recovering_crash_chance = static_cast<uint32_t>(prng->Below(300'000));
  const auto chance = [prng](int64_t parts_max) {
    return prng->Below(3) == 0 ? 0 : static_cast<uint32_t>(prng->Between(1, parts_max));
  };
  plan.request_lost_chance = chance(20'000);
  plan.request_late_chance = chance(20'000);
  plan.answer_lost_chance = chance(20'000);
  plan.answer_late_chance = chance(20'000);
  plan.stale_read_chance = chance(300'000);
  plan.lease_late_chance = chance(300'000);
  plan.cut_off_every_ms = prng->Below(3) == 0 ? 0 : prng->Between(2'000, 20'000);
  plan.cut_off_ms_max = prng->Between(100, 8'000);
  constexpr int64_t kFollowMs[] = {10, 50, 500, 3'000};
  plan.follow_ms_max = kFollowMs[prng->Below(std::size(kFollowMs))];
  plan.loses_writes = prng->Below(8) == 0;
  plan.recovering_stall_chance = chance(100'000);
}

}  // namespace

WorldOptions DrawWorld(uint64_t seed, Sabotage sabotage, bool keeps_lines) {
  Prng prng(seed ^ 0x5eed);
  WorldOptions options{.seed = seed, .plan = DrawFaultPlan(&prng), .core = DrawCore(&prng)};
  options.grace_ms = options.core.expire_strategy == nullptr ? options.core.restart_grace_ms : 0;
  options.rules = DrawRules(&prng);
  options.sabotage = sabotage;
  options.keeps_lines = keeps_lines;
  // Drawn last, so that seeds mean what they meant before these were drawn.
  if (prng.Below(3) > 0) {
    options.plan.commit_inline_chance = static_cast<uint32_t>(prng.Between(100'000, 1'000'000));
  }
  for (SimRule& rule : options.rules) {
    if (prng.Below(3) > 0) continue;
    rule.keys = prng.Between(1, kKeysMax);
    rule.client_cap = 0;
  }
  Limits& limits = options.core.limits;
  limits.output_bytes_max = OneOf<size_t>(&prng, limits.output_bytes_max, prng.Between(200, 1'000));
  options.plan.unsynced = prng.Below(3) == 0;
  if (options.plan.unsynced && prng.Below(2) == 0) {
    options.plan.sync_every_ms = prng.Between(10, 3'000);
  }
  limits.output_total_bytes_max =
      OneOf<size_t>(&prng, limits.output_total_bytes_max, prng.Between(500, 5'000));
  options.format_version = OneOf<uint32_t>(&prng, ledger::kFormatVersion, 1);
  options.plan.commit_tail_chance = static_cast<uint32_t>(prng.Below(1'000'000));
  limits.sentinel_wait_ms_max = OneOf<int64_t>(&prng, limits.sentinel_wait_ms_max, 500);
  for (SimRule& rule : options.rules) DrawWindow(&rule, &prng);
  if (prng.Below(6) == 0) limits.namespace_qps_max = static_cast<uint32_t>(prng.Between(3, 30));
  for (SimRule& rule : options.rules) {
    if (prng.Below(3) == 0) rule.max_hold_ms = prng.Between(100, 8 * rule.resource_timeout_ms);
  }
  Prng halves(seed ^ 0xc1e7);
  for (SimRule& rule : options.rules) DrawClientHalf(&rule, &halves);
  Prng pairs(seed ^ 0x2a12);
  DrawPairs(&options.rules, &pairs);
  Prng boot_clock(seed ^ 0xb007);
  if (boot_clock.Below(4) == 0) options.plan.boot_step_every_ms = boot_clock.Between(1'000, 20'000);
  Prng cluster(seed ^ 0xc105);
  DrawCluster(&options, &cluster);
  Provoke(sabotage, &options.plan);
  return options;
}

}  // namespace nowcalls::sim
