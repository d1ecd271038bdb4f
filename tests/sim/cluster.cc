#include "sim/cluster.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "cluster/lease.h"
#include "sim/ledger_dump.h"

namespace nowcalls::sim {
namespace {

ServerWorld OfNode(ServerWorld world, Machine* machine, SimStore* store, size_t number) {
  world.machine = machine;
  world.store = store;
  world.number = number;
  return world;
}

// No machine of a cluster was booted when another was, and nobody has set their clocks alike.
Machine MachineOf(const ServerWorld& world, const ClusterOptions& options, size_t number) {
  constexpr int64_t kHourMs = 3'600'000;
  if (options.nodes == 1) return Machine(world.timeline);
  Prng prng(options.seed ^ 7 ^ (number << 32));
  Machine::Clocks clocks{.boottime_ms = prng.Between(1, 30 * 24 * kHourMs)};
  clocks.wall_ms += prng.Between(-kHourMs, kHourMs);
  return Machine(world.timeline, static_cast<uint8_t>(number), clocks);
}

ServerWorld WithShared(ServerWorld world, SharedLog* shared) {
  world.shared = shared;
  return world;
}

}  // namespace

Cluster::Node::Node(const ServerWorld& world, SimLog* log, const ClusterOptions& options,
                    size_t number)
    : machine(MachineOf(world, options, number)),
      store(log, options.format, world.plan->unsynced),
      server(OfNode(world, &machine, &store, number), options.core,
             options.seed ^ 4 ^ (number << 32)),
      standby(OfNode(world, &machine, &store, number), options.seed ^ 5 ^ (number << 32)) {
  if (world.saboteur->misses_last()) standby.MissLast();
}

Cluster::Cluster(const ServerWorld& world, const ClusterOptions& options)
    : world_(WithShared(world, options.nodes > 1 ? &shared_ : nullptr)),
      supervised_(options.supervised),
      prng_(options.seed ^ 1),
      shared_(world.timeline, world.plan, options.seed ^ 6) {
  SimLog* const log = options.nodes > 1 ? static_cast<SimLog*>(&shared_) : &own_;
  for (size_t number = 0; number < options.nodes; ++number) {
    nodes_.push_back(std::make_unique<Node>(world_, log, options, number));
  }
  // As far as the slowest member, and it may be a little less.
  shared_.SetTrimTo([this] {
    uint64_t slowest = UINT64_MAX;
    for (const auto& node : nodes_) slowest = std::min(slowest, node->store.synced());
    return slowest - std::min(slowest, 1 + prng_.Below(5));
  });
}

void Cluster::SetWatch(const SimServer::Watch& watch, std::function<void(const Status&)> refused) {
  watch_ = watch;
  refused_ = std::move(refused);
  for (size_t number = 0; number < nodes_.size(); ++number) {
    SimServer::Watch own = watch_;
    own.died = [this, number](bool orderly) { OnDied(number, orderly); };
    own.deposed = [this, number] { StandBy(number, /*seal_ms=*/0); };
    own.committed = [this](uint64_t batch) {
      // The answer to one that was there before the loss may come late.
      if (lost_writes_ && batch > end_before_) {
        refused_(Status::Corruption("a batch behind those that etcd has lost"));
      }
    };
    own.ready = [this, number] { OnReady(number); };
    nodes_[number]->server.SetWatch(own);
    nodes_[number]->standby.SetWatch(
        {.caught_up = [this, number] { Lead(number); },
         .refused = [this, number](const Status& why) { Refuse(number, why); }});
  }
}

bool Cluster::Agrees() {
  const store::MemoryTables expected = store().Left();
  return std::all_of(nodes_.begin(), nodes_.end(), [&](const auto& node) {
    const store::MemoryTables left = node->store.Left();
    return std::all_of(ledger::kLoadOrder.begin(), ledger::kLoadOrder.end(),
                       [&](auto family) { return left.rows(family) == expected.rows(family); });
  });
}

void Cluster::Start() {
  for (size_t number = 0; number < nodes_.size(); ++number) StartNode(number);
  if (nodes_.size() == 1 || std::exchange(watches_, true)) return;
  for (size_t number = 0; number < nodes_.size(); ++number) SyncSoon(number);
  WatchClaim();
}

// As server::MemberLife and the commit thread of a writer do.
void Cluster::SyncSoon(size_t number) {
  world_.timeline->After(prng_.Between(1, 2'000) * kMs, [this, number] {
    nodes_[number]->store.SyncTables();
    SyncSoon(number);
  });
}

// Standbys hear soon that a claim is gone.
void Cluster::WatchClaim() {
  Elect();
  constexpr int64_t kMsMax = 100;
  world_.timeline->After(prng_.Between(1, kMsMax) * kMs, [this] { WatchClaim(); });
}

void Cluster::StartNode(size_t number) {
  Node& node = *nodes_[number];
  if (!node.down()) return;
  if (nodes_.size() == 1) return Lead(number);
  StandBy(number, DumpLedger(&node.store).seal_ms);
}

void Cluster::StandBy(size_t number, int64_t seal_ms) {
  world_.trace->Add("node ", number, ": stands by");
  nodes_[number]->standby.Begin(seal_ms);
  Elect();
}

// A node with the claim has read the whole log, or the only node starts.
void Cluster::Lead(size_t number) {
  Node& node = *nodes_[number];
  int64_t at_us = 0;
  for (const auto& other : nodes_) at_us = std::max(at_us, other->server.ahead_until_us());
  if (world_.timeline->now_us() < at_us) {
    return world_.timeline->At(at_us, [this, number] { Lead(number); });
  }
  if (nodes_.size() > 1 && !node.standby.recovers()) return;  // It was killed meanwhile.
  if (nodes_.size() > 1 && !Settles(&node)) return;
  for (const size_t other : Serving()) {
    world_.faults->Count(Fault::kOldWriter);
    world_.trace->Add("node ", other, ": does not know yet that node ", number, " leads");
    world_.network->Supersede(other);
  }
  TellLeft();
  node.standby.End();
  const Status started = node.server.Start(node.takeover);
  if (!started.ok()) refused_(started);
}

// Nobody has the claim: any standby may have it. One may still see that nobody has.
void Cluster::Elect() {
  const std::vector<size_t> ready = StandingBy();
  if (ready.empty()) return;
  const bool stale = shared_.claimed();
  if (stale && !Happens(world_.plan->stale_read_chance)) return;
  TakeOver(ready[prng_.Below(ready.size())], stale);
}

void Cluster::TakeOver(size_t number, bool stale) {
  Node& node = *nodes_[number];
  const bool answer_lost = Happens(world_.plan->answer_lost_chance);
  if (answer_lost) world_.faults->Count(Fault::kAnswerLost);
  if (stale) world_.faults->Count(Fault::kStaleClaim);
  const auto held =
      shared_.Claim("node-" + std::to_string(number), {.answer_lost = answer_lost, .stale = stale});
  if (!held) return;
  node.takeover = {.claim = *held, .claimed_ms = node.machine.BoottimeMs()};
  world_.network->SetLeaseEnd(number, world_.timeline->now_ms() + cluster::Lease::kTtlMs);
  const uint64_t term = held->claim.term;
  world_.trace->Add("node ", number, ": takes over in term ", term, ", and lacks ",
                    shared_.last() - node.store.applied(), " batches");
  node.standby.TakeOver(term);
  if (!Happens(world_.plan->recovering_crash_chance)) return;
  world_.timeline->After(prng_.Between(1, 5 * kMs), [this, number] {
    if (nodes_[number]->standby.recovers()) KillStandby(number, /*reboots=*/false);
  });
}

// Whether the node may lead: it has read the whole log, and still has the claim.
bool Cluster::Settles(Node* node) {
  if (world_.saboteur->misses_last()) return true;
  const uint64_t last = node->store.applied();
  const cluster::ClaimedLog& txns = shared_.txns();
  const cluster::HeldClaim& held = node->takeover->claim;
  const cluster::TxnReply reply = shared_.Commit(txns.Settle(held, last));
  if (Happens(world_.plan->answer_lost_chance)) {
    world_.faults->Count(Fault::kAnswerLost);
    node->standby.ReadOn();
    return false;
  }
  const auto fate = txns.SettledOf(reply, held, last);
  if (!fate.ok()) {
    Refuse(node->server.number(), fate.status());
  } else if (*fate == cluster::Fate::kBehind) {
    node->standby.ReadOn();
  } else if (*fate == cluster::Fate::kDeposed) {
    node->standby.Begin(/*seal_ms=*/0);
  } else {
    node->takeover->observed = node->standby.observed();
  }
  return fate.ok() && *fate == cluster::Fate::kDone;
}

// What was on its way to the log when writers ended is in it now, or never will be.
void Cluster::TellLeft() {
  if (serving_) TellStopped(/*orderly=*/false);
  if (std::exchange(left_, false)) watch_.left();
}

void Cluster::TellStopped(bool orderly) {
  serving_.reset();
  left_ = true;
  watch_.stopped(orderly);
}

void Cluster::Depose(bool lands) {
  const std::vector<size_t> ready = StandingBy();
  SimServer& writer = leader();
  if (!writer.runs() || ready.empty()) return;
  world_.faults->Count(Fault::kLeaseEndsEarly);
  if (lands) writer.Land();
  shared_.EndLease();
  TakeOver(ready[prng_.Below(ready.size())]);
}

void Cluster::KillOther(bool reboots) {
  std::vector<size_t> others;
  for (size_t number = 0; number < nodes_.size(); ++number) {
    const Node& node = *nodes_[number];
    if (!node.down() && !node.server.runs()) others.push_back(number);
  }
  if (!others.empty()) KillStandby(others[prng_.Below(others.size())], reboots);
}

void Cluster::KillStandby(size_t number, bool reboots) {
  Node& node = *nodes_[number];
  const bool recovered = node.standby.recovers();
  world_.faults->Count(recovered ? Fault::kRecoveringCrash : Fault::kStandbyCrash);
  world_.trace->Add("node ", number, ": dies", recovered ? " while it recovers" : "",
                    reboots ? ", with its machine" : "");
  node.standby.End();
  if (reboots) {
    node.machine.Reboot();
    node.store.LoseTables();
  }
  Supervise(number);
}

void Cluster::OnReady(size_t number) {
  if (lost_writes_) refused_(Status::Corruption("a node leads, and etcd has lost batches of it"));
  leader_ = number;
  serving_ = number;
  watch_.ready();
}

bool Cluster::LoseWrites() {
  uint64_t of_all = UINT64_MAX;
  for (const auto& node : nodes_) of_all = std::min(of_all, node->store.applied());
  end_before_ = shared_.last();
  if (!shared_.LoseFrom(of_all)) return false;
  lost_writes_ = true;
  world_.faults->Count(Fault::kWritesLost);
  world_.trace->Add("etcd: has lost what was behind batch ", shared_.last());
  return true;
}

// The end of a node, until somebody decides.
void Cluster::Refuse(size_t number, const Status& why) {
  if (!lost_writes_) return refused_(why);
  world_.trace->Add("node ", number, ": refuses: ", why.message());
  ++refusals_;
  nodes_[number]->standby.End();
}

void Cluster::Heal() {
  healed_ = true;
  shared_.Heal();
  for (const auto& node : nodes_) node->server.Heal();
}

void Cluster::OnDied(size_t number, bool orderly) {
  if (nodes_.size() == 1) {
    watch_.died(orderly);
  } else if (serving_ == number) {
    TellStopped(orderly);
  }
  Supervise(number);
}

// Starts the node again if it is down.
void Cluster::Supervise(size_t number) {
  if (!supervised_) return;
  const int64_t most_ms = world_.plan->down_ms_max;
  world_.timeline->After(prng_.Between(1, most_ms) * kMs, [this, number] { StartNode(number); });
}

std::vector<size_t> Cluster::Serving() const {
  std::vector<size_t> numbers;
  for (size_t number = 0; number < nodes_.size(); ++number) {
    if (nodes_[number]->server.runs()) numbers.push_back(number);
  }
  return numbers;
}

std::vector<size_t> Cluster::StandingBy() const {
  std::vector<size_t> numbers;
  for (size_t number = 0; number < nodes_.size(); ++number) {
    if (nodes_[number]->standby.stands_by()) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace nowcalls::sim
