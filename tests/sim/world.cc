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
  return {.tokens_max = limits.tokens_max,
          .waiters_max = waiters_max,
          .cancels_max = limits.cancels_per_session_max,
          .cancel_remembered_ms = limits.cancel_remembered_ms};
}

// A token's end takes a sweep after the one that is under way, and each step of one takes two looks
// at the disk; then a batch, which may have room for one end only.
Promptness PromptnessOf(const WorldOptions& options) {
  constexpr int64_t kSteps = 10;
  const FaultPlan& plan = options.plan;
  const int64_t step_ms = (4 * plan.commit_us_max + 2 * plan.turn_us_max) / kMs + 2;
  const int64_t way_ms = plan.network_delay_us_max / kMs + plan.network_stall_ms_max + 1;
  return {.sweep_ms = 2 * options.core.sweep_interval_ms + kSteps * step_ms + kSecond / kMs,
          .sweep_each_ms = 3 * step_ms,
          .network_ms = 2 * way_ms,
          .save_ms = kSecond / kMs + 2 * step_ms,
          .mass_factor = options.core.mass_expiry_factor};
}

}  // namespace

World::World(const WorldOptions& options)
    : options_(options),
      token_ids_(options.core.token_id_key),
      trace_(&timeline_, options.keeps_lines),
      saboteur_(options.sabotage, options.seed ^ 2),
      network_(&timeline_, &options_.plan, &faults_, options.seed ^ 3),
      oracle_(&timeline_, options.grace_ms, LimitsOf(options.core.limits)),
      cluster_(
          {.timeline = &timeline_,
           .trace = &trace_,
           .plan = &options_.plan,
           .faults = &faults_,
           .network = &network_,
           .saboteur = &saboteur_},
          {.nodes = options.nodes,
           .format = {.version = options.format_version, .token_id_key = options.core.token_id_key},
           .core = options.core,
           .seed = options.seed,
           .supervised = options.supervised}),
      admin_(&network_, &oracle_, &trace_),
      rules_(options.rules) {
  for (const SimRule& rule : rules_) {
    for (const int64_t lane : rule.lanes()) {
      oracle_.AddFlow(lane, rule.Facts(options_.core.resource_timeout_factor));
      oracle_.calls().AddLane(lane, rule.Window());
    }
  }
  network_.SetWatch({.arrived = [this](size_t number) { cluster_.server(number).Arrived(); },
                     .broken = [this](LinkId link) { oracle_.LinkBroken(link); },
                     .settled = [this](LinkId link) { oracle_.LinkSettled(link); },
                     .unfenced =
                         [this](LinkId link) {
                           oracle_.Violation("S9 link " + std::to_string(link) +
                                             " is answered by a writer whose lease was over");
                         }});
  oracle_.calls().SetGuard(options_.core.limits.namespace_qps_max);
  oracle_.SetPromptness(PromptnessOf(options_));
  cluster_.SetWatch(
      {.died = [this](bool orderly) { OnDied(orderly); },
       .stopped = [this](bool orderly) { oracle_.ServerStopped(Dump().tokens, orderly); },
       .left =
           [this] {
             oracle_.LedgerLeft(Dump().tokens);
             Verify();
           },
       .ready = [this] { OnReady(); },
       .hindered = [this](int64_t until_ms) { oracle_.ServerHindered(until_ms); },
       .set_back = [this](int64_t by_ms,
                          int64_t stands_ms) { oracle_.ClockSetBack(by_ms, stands_ms); },
       .synced = [this] { oracle_.LedgerSynced(); },
       .lost = [this] { OnBatchesLost(); }},
      [this](const Status& refused) {
        oracle_.Accuse("I1 a server refuses the ledger that was left: " + refused.ToString());
      });
}

SimClient& World::AddClient(const ClientIdentity& identity) {
  const std::string host = "10.0.0." + std::to_string(clients_.size() + 1);
  clients_.push_back(std::make_unique<SimClient>(identity, host, &network_, &oracle_, &trace_));
  return *clients_.back();
}

SimSentinel& World::AddSentinel(SentinelIdentity identity) {
  const std::string host = "10.0.1." + std::to_string(sentinels_.size() + 1);
  identity.wait_ms_max = std::min(kQueueingMs, options_.core.limits.sentinel_wait_ms_max);
  sentinels_.push_back(std::make_unique<SimSentinel>(std::move(identity), host, &token_ids_,
                                                     &network_, &oracle_, &trace_));
  return *sentinels_.back();
}

SessionClient& World::AddSession(SessionIdentity identity) {
  const std::string host = "10.0.2." + std::to_string(sessions_.size() + 1);
  sessions_.push_back(std::make_unique<SessionClient>(
      std::move(identity), host,
      SessionClient::World{
          .timeline = &timeline_,
          .tapped = {.network = &network_, .oracle = &oracle_, .trace = &trace_, .rules = &rules_},
          .cancels_max = options_.core.limits.cancels_per_session_max,
          .sabotage = options_.sabotage},
      options_.seed ^ (5 + sessions_.size())));
  return *sessions_.back();
}

std::vector<Caller*> World::callers() const {
  std::vector<Caller*> callers;
  for (const auto& client : clients_) callers.push_back(client.get());
  for (const auto& sentinel : sentinels_) callers.push_back(sentinel.get());
  for (const auto& session : sessions_) callers.push_back(session.get());
  return callers;
}

std::vector<std::string> World::Owners() const {
  std::vector<std::string> owners;
  for (const auto& client : clients_) owners.push_back(client->owner());
  for (const auto& sentinel : sentinels_) owners.push_back(sentinel->owner());
  for (const auto& session : sessions_) owners.push_back(session->owner());
  return owners;
}

std::vector<uint64_t> World::HeldTokens() const {
  std::vector<uint64_t> tokens;
  for (const auto& client : clients_) {
    for (const SimClient::Held& held : client->held()) tokens.push_back(held.token);
  }
  for (const auto& sentinel : sentinels_) {
    tokens.insert(tokens.end(), sentinel->held().begin(), sentinel->held().end());
  }
  for (const auto& session : sessions_) {
    for (const client::HeldPtr& held : session->permits()) {
      if (!held->grant.local) tokens.push_back(held->grant.token.value);
    }
  }
  return tokens;
}

LedgerDump World::Dump() {
  store::MemoryTables left = cluster_.store().Left();
  return DumpLedger(&left);
}

// A history that is cut short tells nothing.
void World::Audit() {
  constexpr uint32_t kLongEnough = 1'000;
  const LedgerDump dump = Dump();
  const bool tells = options_.core.limits.history_max >= kLongEnough;
  oracle_.Audit(dump.tokens, tells ? &dump.history : nullptr);
  for (const auto& session : sessions_) session->judge().Audit(dump.tokens);
}

void World::OnBatchesLost() {
  oracle_.BatchesLost();
  for (const auto& session : sessions_) session->judge().BatchesLost();
}

void World::OnDied(bool orderly) {
  oracle_.ServerDied(Dump().tokens, orderly);
  Verify();
}

// As nowcalls-admin does it.
void World::Verify() {
  constexpr uint64_t kProblemsMax = 1;
  Unwatched unwatched;
  store::MemoryTables left = cluster_.store().Left();
  const auto summary = backup::Verify(
      &left, kProblemsMax,
      [this](const backup::Problem& problem) {
        oracle_.Violation("verify: " + std::string(backup::ProblemName(problem.kind)) + ", " +
                          problem.detail);
      },
      &unwatched);
  if (!summary.ok()) oracle_.Violation("verify: " + summary.status().ToString());
}

void World::OnReady() {
  if (!cluster_.Agrees()) oracle_.Violation("I1 the nodes have different tables");
  const ClockGap gap = server().clock_gap();
  oracle_.ServerReady(gap, Dump().tokens, server().AskFlows());
  const bool is_known = options_.nodes == 1 && !machine().wall_was_set();
  oracle_.calls().Ready(is_known ? ClockGap::kNone : gap);
}

void World::RunUntil(int64_t at_us) {
  timeline_.RunUntil(at_us, [this] { return !oracle_.violations().empty(); });
}

bool World::LoseWrites() {
  const bool lost = cluster_.LoseWrites();
  if (lost) oracle_.Rest();
  return lost;
}

void World::Heal() {
  network_.Heal();
  cluster_.Heal();
}

}  // namespace nowcalls::sim
