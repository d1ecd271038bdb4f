// Cluster: the nodes of one ledger, which of them leads, and the supervisor that starts them.
//
// Thread: one at a time. A single node is a server with its ledger. Several are on machines of
// their own, each with clocks and tables, and have the log in common. Clients find the node that
// leads, and others that believe so. One that is deposed hears of it at its next commit, or knows
// by the end of its lease, and serves on until then.
#ifndef NOWCALLS_SIM_CLUSTER_H_
#define NOWCALLS_SIM_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/prng.h"
#include "cluster/claimed_log.h"
#include "core/options.h"
#include "ledger/entities.h"
#include "nowcalls/status.h"
#include "sim/machine.h"
#include "sim/shared_log.h"
#include "sim/sim_log.h"
#include "sim/sim_server.h"
#include "sim/sim_standby.h"
#include "sim/sim_store.h"

namespace nowcalls::sim {

struct ClusterOptions {
  size_t nodes = 1;
  ledger::Format format;
  core::CoreOptions core;
  uint64_t seed = 0;
  bool supervised = true;
};

class Cluster {
 public:
  // What `world` points to outlives it, but for the store, which is the node's.
  Cluster(const ServerWorld& world, const ClusterOptions& options);

  // `watch`: of whichever node leads. `refused`: a node refuses the ledger that was left.
  void SetWatch(const SimServer::Watch& watch, std::function<void(const Status&)> refused);

  // The node that leads, or did last.
  SimServer& leader() { return nodes_[leader_]->server; }
  SimServer& server(size_t number) { return nodes_[number]->server; }
  // Those that serve, also those that were deposed and do not know it.
  std::vector<size_t> Serving() const;
  Machine& machine(size_t number) { return nodes_[number]->machine; }
  size_t size() const { return nodes_.size(); }
  SimStore& store() { return nodes_[leader_]->store; }
  // Whether all nodes have the same tables once they have read the log.
  bool Agrees();

  void Start();
  // The lease of a writer that is well ends, and a standby takes the claim. `lands`: the batch
  // under way was before.
  void Depose(bool lands);
  // A node that does not lead; `reboots`: with its machine.
  void KillOther(bool reboots);
  // etcd loses the last batches, of those that all nodes have. So no node may go on. False: there
  // are none that it may lose.
  bool LoseWrites();
  // Nodes that have refused since.
  size_t refusals() const { return refusals_; }
  // As SimServer::Heal.
  void Heal();

 private:
  struct Node {
    Node(const ServerWorld& world, SimLog* log, const ClusterOptions& options, size_t number);
    bool down() const { return !server.runs() && !standby.stands_by() && !standby.recovers(); }

    Machine machine;
    SimStore store;
    SimServer server;
    SimStandby standby;
    std::optional<Takeover> takeover;  // The last one.
  };

  void StartNode(size_t number);
  void StandBy(size_t number, int64_t seal_ms);
  void SyncSoon(size_t number);
  void Lead(size_t number);
  void WatchClaim();
  void Elect();
  void TakeOver(size_t number, bool stale = false);
  void KillStandby(size_t number, bool reboots);
  bool Settles(Node* node);
  void Refuse(size_t number, const Status& why);
  void OnReady(size_t number);
  bool Happens(uint32_t chance) { return !healed_ && prng_.ChancePerMillion(chance); }
  void TellLeft();
  void TellStopped(bool orderly);
  void OnDied(size_t number, bool orderly);
  void Supervise(size_t number);
  std::vector<size_t> StandingBy() const;

  const ServerWorld world_;
  const bool supervised_;
  Prng prng_;
  LocalLog own_;  // Of a single node.
  SharedLog shared_;
  std::vector<std::unique_ptr<Node>> nodes_;
  size_t leader_ = 0;
  bool healed_ = false;
  bool watches_ = false;
  bool lost_writes_ = false;
  uint64_t end_before_ = 0;  // Of the log, before etcd lost some of it.
  size_t refusals_ = 0;
  // The writer that the oracle knows of. Another may still believe that it is one.
  std::optional<size_t> serving_;
  bool left_ = false;  // Since the last start the ledger of a writer that ended is to be told.
  SimServer::Watch watch_;
  std::function<void(const Status&)> refused_;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_CLUSTER_H_
