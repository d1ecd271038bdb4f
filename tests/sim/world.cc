#include "sim/world.h"

#include <algorithm>
#include <utility>

#include "backup/verify.h"

namespace nowcalls::sim {
namespace {

class Unwatched : public backup::VerifyWatcher {
 public:
  void ExpectTokens(uint64_t /*total*/) override {}
  Status OnToken() override { return {}; }
};

ServerLimits LimitsOf(const Limits& limits) {
  const uint32_t waiters_max =
      std::min(limits.waiters_per_rule_max, limits.waiters_per_connection_max);
  return {.tokens_max = limits.tokens_max, .waiters_max = waiters_max};
}

}  // namespace

World::World(const WorldOptions& options)
    : options_(options),
      prng_(options.seed ^ 1),
      trace_(&timeline_, options.keeps_lines),
      machine_(&timeline_),
      store_(ledger::Format{.token_id_key = options.core.token_id_key}),
      saboteur_(options.sabotage, options.seed ^ 2),
      network_(&timeline_, &options_.plan, &faults_, options.seed ^ 3),
      oracle_(&timeline_, options.grace_ms, LimitsOf(options.core.limits)),
      server_({.timeline = &timeline_,
               .trace = &trace_,
               .plan = &options_.plan,
               .faults = &faults_,
               .machine = &machine_,
               .store = &store_,
               .network = &network_,
               .saboteur = &saboteur_},
              options.core, options.seed ^ 4),
      admin_(&network_, &oracle_, &trace_),
      rules_(options.rules) {
  for (const SimRule& rule : rules_) {
    oracle_.AddFlow(rule.flow, rule.Facts(options_.core.resource_timeout_factor));
  }
  network_.SetWatch(
      {.arrived = [this] { server_.Arrived(); },
       .broken = [this](LinkId link) { oracle_.LinkBroken(link); },
       .settled = [this](LinkId link) { oracle_.levels().SessionSettled(oracle_.Tick(), link); }});
  server_.SetWatch({.died = [this] { OnDied(); }, .ready = [this] { OnReady(); }});
}

SimClient& World::AddClient(const ClientIdentity& identity) {
  const std::string host = "10.0.0." + std::to_string(clients_.size() + 1);
  clients_.push_back(std::make_unique<SimClient>(identity, host, &network_, &oracle_, &trace_));
  return *clients_.back();
}

void World::StartServer() {
  if (timeline_.now_us() < server_.ahead_until_us()) {
    return timeline_.At(server_.ahead_until_us(), [this] { StartServer(); });
  }
  const Status started = server_.Start();
  if (!started.ok()) {
    oracle_.Violation("I1 the server refuses the ledger that it left: " + started.ToString());
  }
}

void World::OnDied() {
  oracle_.ServerDied(DumpLedger(&store_).tokens);
  Verify();
  if (!options_.supervised) return;
  timeline_.After(prng_.Between(1, options_.plan.down_ms_max) * kMs, [this] { StartServer(); });
}

// As nowcalls-admin does it.
void World::Verify() {
  constexpr uint64_t kProblemsMax = 1;
  Unwatched unwatched;
  const auto summary = backup::Verify(
      &store_, kProblemsMax,
      [this](const backup::Problem& problem) {
        oracle_.Violation("verify: " + std::string(backup::ProblemName(problem.kind)) + ", " +
                          problem.detail);
      },
      &unwatched);
  if (!summary.ok()) oracle_.Violation("verify: " + summary.status().ToString());
}

void World::OnReady() {
  oracle_.ServerReady(server_.rebooted(), DumpLedger(&store_).tokens, server_.AskFlows());
}

void World::RunUntil(int64_t at_us) {
  timeline_.RunUntil(at_us, [this] { return !oracle_.violations().empty(); });
}

void World::Heal() {
  network_.Heal();
  server_.Heal();
}

}  // namespace nowcalls::sim
