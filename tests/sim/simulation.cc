#include "sim/simulation.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "sim/admin_life.h"
#include "sim/client_life.h"
#include "sim/draw_world.h"
#include "sim/fault_injector.h"
#include "sim/sentinel_life.h"
#include "sim/session_life.h"
#include "sim/world.h"

namespace nowcalls::sim {
namespace {

// Longer than anything waits or stalls, and than any deadline that was given.
constexpr int64_t kSettleUs = 40 * kSecond;
constexpr int64_t kDrainUs = 100 * kSecond;
constexpr int64_t kAuditEveryUs = 200 * kMs;
constexpr int64_t kNoticeUs = 20 * kSecond;

class Simulation {
 public:
  explicit Simulation(const RunOptions& options)
      : prng_(options.seed),
        world_(DrawWorld(options.seed, options.sabotage, options.keeps_lines)),
        admin_(&world_, prng_.Next()),
        injector_(&world_, prng_.Next()) {}

  RunResult Run();

 private:
  void AddClients();
  void AddSentinels();
  void AddSessions();
  void AuditNowAndThen();
  void LiveWithFaults();
  bool LoseWrites();
  void Settle();
  void Drain();
  void GrantAgain();
  void Expect(bool holds, const std::string& what) {
    if (!holds) world_.oracle().Violation("I7 " + what);
  }
  bool broken() { return !world_.oracle().violations().empty(); }

  Prng prng_;
  World world_;
  AdminLife admin_;
  FaultInjector injector_;
  std::vector<std::unique_ptr<ClientLife>> lives_;
  std::vector<std::unique_ptr<SentinelLife>> sentinel_lives_;
  std::vector<std::unique_ptr<SessionLife>> session_lives_;
};

RunResult Simulation::Run() {
  AddClients();
  AddSentinels();
  AddSessions();
  LiveWithFaults();
  if (!broken() && LoseWrites()) {
    world_.RunFor(kNoticeUs);
    if (world_.cluster().refusals() == 0) {
      world_.oracle().Accuse("I1 no node has noticed that etcd has lost batches");
    }
  } else {
    if (!broken()) Settle();
    if (!broken()) Drain();
    if (!broken()) GrantAgain();
  }
  RunResult result{.hash = world_.trace().hash(),
                   .faults = world_.faults(),
                   .violations = world_.oracle().violations(),
                   .lines = world_.trace().lines()};
  result.requests = world_.admin().requests();
  for (const Caller* caller : world_.callers()) result.requests += caller->requests();
  for (const auto& client : world_.clients()) result.granted += client->granted();
  for (const auto& sentinel : world_.sentinels()) result.granted += sentinel->granted();
  for (const auto& session : world_.sessions()) result.granted += session->granted();
  return result;
}

// Some share a client id, as processes of one host may; their request ids differ. Some of those
// that name themselves are an instance of their own, and some a new one with each connection.
void Simulation::AddClients() {
  constexpr uint64_t kRequestIds = 1'000'000;
  Prng listening(world_.options().seed ^ 0x1057);
  Prng instances(world_.options().seed ^ 0x1257);
  const auto count = static_cast<uint64_t>(prng_.Between(3, 10));
  for (uint64_t i = 1; i <= count; ++i) {
    ClientIdentity identity{.name = "client-" + std::to_string(i)};
    identity.name_space = prng_.Below(3) == 0 ? "default" : "shop";
    const uint64_t kind = prng_.Below(10);
    if (kind < 7) {
      identity.client_id = "c" + std::to_string(prng_.Below(5) == 0 ? 1 : i);
    } else if (kind == 9) {
      identity.name_space = "default";
      identity.says_hello = false;
    }
    identity.listens = identity.says_hello && listening.Below(3) > 0;
    if (!identity.client_id.empty() && instances.Below(2) == 0) {
      constexpr uint64_t kInstances = uint64_t{1} << 40;
      identity.instance = i * kInstances;
      identity.restarts = instances.Below(3) == 0;
    }
    SimClient& client = world_.AddClient(identity);
    lives_.push_back(std::make_unique<ClientLife>(&world_, &client, i * kRequestIds, prng_.Next()));
  }
}

void Simulation::AddSentinels() {
  for (uint64_t i = 1, count = prng_.Below(6); i <= count; ++i) {
    SentinelIdentity identity{.name = "sentinel-" + std::to_string(i)};
    identity.pings = prng_.Below(5) > 0;
    identity.name_space = identity.pings && prng_.Below(3) > 0 ? "shop" : "default";
    SimSentinel& sentinel = world_.AddSentinel(std::move(identity));
    sentinel_lives_.push_back(std::make_unique<SentinelLife>(&world_, &sentinel, prng_.Next()));
  }
}

// Drawn by a stream of its own, so that seeds mean what they meant to the others.
void Simulation::AddSessions() {
  Prng prng(world_.options().seed ^ 0x5e55);
  for (uint64_t i = 1, count = prng.Below(4); i <= count; ++i) {
    SessionIdentity identity{.name = "session-" + std::to_string(i)};
    identity.client_id = "s" + std::to_string(i);
    if (prng.Below(3) > 0) identity.name_space = "shop";
    identity.exclusive = prng.Below(4) == 0;
    identity.timeout_ms = prng.Below(2) == 0 ? 5'000 : prng.Between(20, 2'000);
    constexpr Fallback kModes[] = {Fallback::kFail, Fallback::kFail, Fallback::kByRule,
                                   Fallback::kLocal, Fallback::kPass};
    identity.fallback = kModes[prng.Below(5)];
    for (const SimRule& rule : world_.rules()) {
      if (prng.Below(2) == 0) identity.shares[FlowId(rule.flow)] = prng.Below(4);
    }
    SessionClient& client = world_.AddSession(std::move(identity));
    session_lives_.push_back(std::make_unique<SessionLife>(&world_, &client, prng.Next()));
  }
}

void Simulation::AuditNowAndThen() {
  world_.Audit();
  world_.timeline().After(prng_.Between(1, 2 * kAuditEveryUs), [this] { AuditNowAndThen(); });
}

void Simulation::LiveWithFaults() {
  world_.StartServer();
  admin_.Begin();
  injector_.Begin();
  for (const auto& life : lives_) life->Begin();
  for (const auto& life : sentinel_lives_) life->Begin();
  for (const auto& life : session_lives_) life->Begin();
  AuditNowAndThen();
  world_.RunFor(prng_.Between(5, 40) * kSecond);
}

// True: etcd has lost batches, and the world comes to no rest.
bool Simulation::LoseWrites() {
  if (!world_.options().plan.loses_writes) return false;
  constexpr int kAttempts = 100;
  for (int i = 0; i < kAttempts && !broken(); ++i) {
    if (world_.LoseWrites()) return true;
    world_.RunFor(kAuditEveryUs);
  }
  return false;
}

void Simulation::Settle() {
  injector_.Stop();
  world_.Heal();
  for (const auto& life : lives_) life->Stop();
  for (const auto& life : sentinel_lives_) life->Stop();
  for (const auto& life : session_lives_) life->Stop();
  admin_.Restore();
  world_.RunFor(kSettleUs);
  if (broken()) return;
  Expect(world_.server().runs(), "the server does not run");
  Expect(admin_.restored(), "the rules cannot be restored");
  for (const Caller* caller : world_.callers()) {
    Expect(caller->unanswered() == 0,
           caller->name() + " waits for " + std::to_string(caller->unanswered()) + " answers");
  }
}

// Half of the clients leave; nobody keeps or releases anything.
void Simulation::Drain() {
  for (const auto& life : session_lives_) life->Leave();
  for (Caller* caller : world_.callers()) {
    if (prng_.Below(2) == 0) caller->Hangup(/*politely=*/prng_.Below(2) == 0);
  }
  world_.RunFor(kDrainUs);
  if (broken()) return;
  const size_t tokens = world_.Dump().tokens.size();
  Expect(tokens == 0, std::to_string(tokens) + " tokens are left when every deadline has passed");
}

void Simulation::GrantAgain() {
  for (Caller* caller : world_.callers()) caller->Hangup(/*politely=*/false);
  world_.RunFor(kSecond);
  SimClient& last = world_.AddClient({.name = "last", .name_space = "shop", .client_id = "last"});
  last.Open(/*steady=*/true);
  uint64_t flows = 0;
  for (const SimRule& rule : world_.rules()) {
    // Of the namespace's own sessions one is surely online if it is that of this client.
    if (rule.for_each_session && rule.name_space != "shop") continue;
    const auto level = static_cast<int64_t>(rule.count);
    for (const int64_t lane : rule.lanes()) {
      if (flows == world_.options().core.limits.tokens_max) break;
      ++flows;
      last.Acquire(
          {.flow = lane, .count = rule.client_cap == 0 ? level : std::min(level, rule.client_cap)});
    }
  }
  world_.RunFor(kSecond);
  if (broken()) return;
  Expect(last.granted() == flows, "only " + std::to_string(last.granted()) + " of " +
                                      std::to_string(flows) + " flows grant their level again");
  last.Hangup(/*politely=*/true);
  world_.RunFor(kDrainUs);
  if (broken()) return;
  const LedgerDump left = world_.Dump();
  Expect(left.tokens.empty() && left.sessions == 0,
         std::to_string(left.sessions) + " sessions are left when all clients are gone");
}

}  // namespace

RunResult Run(const RunOptions& options) { return Simulation(options).Run(); }

bool HasCluster(uint64_t seed) {
  return DrawWorld(seed, Sabotage::kNone, /*keeps_lines=*/false).nodes > 1;
}

std::string ReplayCommand(uint64_t seed) { return "tools/dev sim --seed " + std::to_string(seed); }

}  // namespace nowcalls::sim
