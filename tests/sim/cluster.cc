#include "sim/cluster.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace nowcalls::sim {
namespace {

ServerWorld WithStore(ServerWorld world, SimStore* store) {
  world.store = store;
  return world;
}

}  // namespace

Cluster::Node::Node(const ServerWorld& world, SimLog* log, const ClusterOptions& options,
                    size_t number)
    : store(log, options.format, world.plan->unsynced),
      server(WithStore(world, &store), options.core, options.seed ^ 4 ^ (number << 32)),
      standby(world.timeline, world.plan, &store, options.seed ^ 5 ^ (number << 32)) {}

Cluster::Cluster(const ServerWorld& world, const ClusterOptions& options)
    : world_(world),
      supervised_(options.supervised),
      prng_(options.seed ^ 1),
      log_(/*shared=*/options.nodes > 1) {
  for (size_t number = 0; number < options.nodes; ++number) {
    nodes_.push_back(std::make_unique<Node>(world_, &log_, options, number));
  }
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
  if (node.term != log_.term()) return node.standby.Begin();  // Another has claimed meanwhile.
  // The lease of the writer before is over by now.
  for (const auto& other : nodes_) {
    if (other->server.runs()) other->server.Depose();
  }
  node.standby.End();
  const Status started = node.server.Start();
  if (!started.ok()) refused_(started);
}

// Nobody leads: any standby may have the claim.
void Cluster::Elect() {
  const bool one_does = std::any_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
    return node->server.runs() || node->standby.recovers();
  });
  const std::vector<size_t> ready = StandingBy();
  if (!one_does && !ready.empty()) TakeOver(ready[prng_.Below(ready.size())]);
}

void Cluster::TakeOver(size_t number) {
  Node& node = *nodes_[number];
  if (world_.saboteur->misses_last()) MissLast(&node);
  node.term = log_.Claim();
  world_.trace->Add("node ", number, ": takes over in term ", node.term, ", and lacks ",
                    log_.last() - node.store.applied(), " batches");
  node.standby.TakeOver(node.term);
  if (healed_ || !prng_.ChancePerMillion(world_.plan->recovering_crash_chance)) return;
  world_.timeline->After(prng_.Between(1, 5 * kMs), [this, number] {
    if (nodes_[number]->standby.recovers()) KillStandby(number);
  });
}

// The other tables forget it, too, or they would be those of no ledger.
void Cluster::MissLast(Node* by) {
  if (by->store.applied() == log_.last()) return;
  log_.Cut(log_.last() - 1);
  for (const auto& node : nodes_) {
    if (node->store.applied() > log_.last()) node->store.Copy(by->store);
  }
}

void Cluster::Depose(bool lands) {
  const std::vector<size_t> ready = StandingBy();
  SimServer& writer = leader();
  if (!writer.runs() || ready.empty()) return;
  if (lands) writer.Land();
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
  // Its claim was the end of the one before.
  if (recovered && leader().runs()) leader().Depose();
  Supervise(number);
}

void Cluster::Heal() {
  healed_ = true;
  for (const auto& node : nodes_) node->server.Heal();
}

void Cluster::OnDied(size_t number, bool orderly) {
  watch_.died(orderly);
  Supervise(number);
}

// Starts the node again if it is down, and lets somebody lead.
void Cluster::Supervise(size_t number) {
  if (!supervised_) return;
  const int64_t most_ms = world_.plan->down_ms_max;
  world_.timeline->After(prng_.Between(1, most_ms) * kMs, [this, number] { StartNode(number); });
  if (nodes_.size() == 1) return;
  world_.timeline->After(prng_.Between(1, most_ms) * kMs, [this] { Elect(); });
}

std::vector<size_t> Cluster::StandingBy() const {
  std::vector<size_t> numbers;
  for (size_t number = 0; number < nodes_.size(); ++number) {
    if (nodes_[number]->standby.stands_by()) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace nowcalls::sim
