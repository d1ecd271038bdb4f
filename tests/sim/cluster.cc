#include "sim/cluster.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace nowcalls::sim {
namespace {

ServerWorld OfNode(ServerWorld world, SimStore* store, size_t number) {
  world.store = store;
  world.number = number;
  return world;
}

ServerWorld WithShared(ServerWorld world, SharedLog* shared) {
  world.shared = shared;
  return world;
}

}  // namespace

Cluster::Node::Node(const ServerWorld& world, SimLog* log, const ClusterOptions& options,
                    size_t number)
    : store(log, options.format, world.plan->unsynced),
      server(OfNode(world, &store, number), options.core, options.seed ^ 4 ^ (number << 32)),
      standby(world, &store, options.seed ^ 5 ^ (number << 32)) {
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
    for (const auto& node : nodes_) slowest = std::min(slowest, node->store.applied());
    return slowest - std::min(slowest, prng_.Below(5));
  });
}

void Cluster::SetWatch(const SimServer::Watch& watch, std::function<void(const Status&)> refused) {
  watch_ = watch;
  refused_ = std::move(refused);
  for (size_t number = 0; number < nodes_.size(); ++number) {
    SimServer::Watch own = watch_;
    own.died = [this, number](bool orderly) { OnDied(number, orderly); };
    own.deposed = [this, number] { StartNode(number); };
    own.ready = [this, number] {
      leader_ = number;
      serving_ = number;
      watch_.ready();
    };
    nodes_[number]->server.SetWatch(own);
    nodes_[number]->standby.SetWatch(
        {.caught_up = [this, number] { Lead(number); }, .refused = refused_});
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
  if (nodes_.size() > 1 && !std::exchange(watches_, true)) WatchClaim();
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
  world_.trace->Add("node ", number, ": stands by");
  node.standby.Begin();
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
  // One whose lease ended early is told; so is one that stands still, which looks at its lease
  // next.
  for (const auto& other : nodes_) {
    if (world_.saboteur->fences_itself() && other->server.runs()) other->server.Depose();
  }
  TellLeft();
  node.standby.End();
  const Status started = node.server.Start(node.claim, node.claimed_ms);
  if (!started.ok()) refused_(started);
}

// Nobody has the claim: any standby may have it.
void Cluster::Elect() {
  const std::vector<size_t> ready = StandingBy();
  if (!shared_.claimed() && !ready.empty()) TakeOver(ready[prng_.Below(ready.size())]);
}

void Cluster::TakeOver(size_t number) {
  Node& node = *nodes_[number];
  const bool answer_lost = !healed_ && prng_.ChancePerMillion(world_.plan->answer_lost_chance);
  if (answer_lost) world_.faults->Count(Fault::kAnswerLost);
  node.claim = shared_.Claim("node-" + std::to_string(number), answer_lost);
  node.claimed_ms = world_.machine->BoottimeMs();
  const uint64_t term = node.claim->claim.term;
  world_.trace->Add("node ", number, ": takes over in term ", term, ", and lacks ",
                    shared_.last() - node.store.applied(), " batches");
  node.standby.TakeOver(term);
  if (healed_ || !prng_.ChancePerMillion(world_.plan->recovering_crash_chance)) return;
  world_.timeline->After(prng_.Between(1, 5 * kMs), [this, number] {
    if (nodes_[number]->standby.recovers()) KillStandby(number);
  });
}

// Whether the node may lead: it has read the whole log, and still has the claim.
bool Cluster::Settles(Node* node) {
  if (world_.saboteur->misses_last()) return true;
  const uint64_t last = node->store.applied();
  const cluster::ClaimedLog& txns = shared_.txns();
  const auto fate =
      txns.SettledOf(shared_.Commit(txns.Settle(*node->claim, last)), *node->claim, last);
  if (!fate.ok()) {
    refused_(fate.status());
  } else if (*fate == cluster::Fate::kBehind) {
    node->standby.ReadOn();
  } else if (*fate == cluster::Fate::kDeposed) {
    node->standby.Begin();
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

void Cluster::KillOther() {
  std::vector<size_t> others;
  for (size_t number = 0; number < nodes_.size(); ++number) {
    const Node& node = *nodes_[number];
    if (!node.down() && !node.server.runs()) others.push_back(number);
  }
  if (!others.empty()) KillStandby(others[prng_.Below(others.size())]);
}

void Cluster::KillStandby(size_t number) {
  SimStandby& standby = nodes_[number]->standby;
  const bool recovered = standby.recovers();
  world_.faults->Count(recovered ? Fault::kRecoveringCrash : Fault::kStandbyCrash);
  world_.trace->Add("node ", number, ": dies", recovered ? " while it recovers" : "");
  standby.End();
  Supervise(number);
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

std::vector<size_t> Cluster::StandingBy() const {
  std::vector<size_t> numbers;
  for (size_t number = 0; number < nodes_.size(); ++number) {
    if (nodes_[number]->standby.stands_by()) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace nowcalls::sim
