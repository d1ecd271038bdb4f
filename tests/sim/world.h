// World: everything of a simulation, wired together: machines, servers, network, ledger, oracle.
//
// Thread: one at a time. A world does by itself what a supervisor does: a server that has died is
// started again; and the oracle is shown the ledger at each death and start, and when asked.
#ifndef NOWCALLS_SIM_WORLD_H_
#define NOWCALLS_SIM_WORLD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/prng.h"
#include "core/options.h"
#include "core/tables/token_ids.h"
#include "sim/cluster.h"
#include "sim/faults.h"
#include "sim/ledger_dump.h"
#include "sim/machine.h"
#include "sim/network.h"
#include "sim/oracle.h"
#include "sim/saboteur.h"
#include "sim/session_client.h"
#include "sim/sim_admin.h"
#include "sim/sim_client.h"
#include "sim/sim_rules.h"
#include "sim/sim_sentinel.h"
#include "sim/sim_server.h"
#include "sim/sim_store.h"
#include "sim/timeline.h"
#include "sim/trace.h"

namespace nowcalls::sim {

struct WorldOptions {
  uint64_t seed = 0;
  FaultPlan plan;
  core::CoreOptions core;
  uint32_t format_version = ledger::kFormatVersion;  // Of the ledger at the beginning.
  // What a restart spares, at least: 0 under the strict expire strategy.
  int64_t grace_ms = 10'000;
  std::vector<SimRule> rules{};
  Sabotage sabotage = Sabotage::kNone;
  bool keeps_lines = false;
  // False: a server that has died is started by hand.
  bool supervised = true;
  size_t nodes = 1;  // More: a cluster.
};

class World {
 public:
  explicit World(const WorldOptions& options);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Timeline& timeline() { return timeline_; }
  Trace& trace() { return trace_; }
  Network& network() { return network_; }
  Machine& machine() { return cluster_.machine(cluster_.leader().number()); }
  Cluster& cluster() { return cluster_; }
  SimServer& server() { return cluster_.leader(); }
  // The ledger as a recovery would find it now.
  LedgerDump Dump();
  Oracle& oracle() { return oracle_; }
  SimAdmin& admin() { return admin_; }
  FaultCounts& faults() { return faults_; }
  const WorldOptions& options() const { return options_; }
  std::vector<SimRule>& rules() { return rules_; }

  SimClient& AddClient(const ClientIdentity& identity);
  const std::vector<std::unique_ptr<SimClient>>& clients() const { return clients_; }
  // How long its acquires may wait is the server's to say.
  SimSentinel& AddSentinel(SentinelIdentity identity);
  const std::vector<std::unique_ptr<SimSentinel>>& sentinels() const { return sentinels_; }
  SessionClient& AddSession(SessionIdentity identity);
  const std::vector<std::unique_ptr<SessionClient>>& sessions() const { return sessions_; }
  // All of them, of both protocols.
  std::vector<Caller*> callers() const;
  // The sessions' owners, one of each client.
  std::vector<std::string> Owners() const;
  // Tokens that some client holds.
  std::vector<uint64_t> HeldTokens() const;

  void StartServer() { cluster_.Start(); }
  // Ends early once a promise is broken: what follows from that is noise.
  void RunUntil(int64_t at_us);
  void RunFor(int64_t duration_us) { RunUntil(timeline_.now_us() + duration_us); }
  // Shows the oracle the ledger.
  void Audit();
  // No fault from now on.
  void Heal();
  // As Cluster::LoseWrites. Whether nodes go on is all that is judged from then on.
  bool LoseWrites();

 private:
  void OnDied(bool orderly);
  void OnBatchesLost();
  void Verify();
  void OnReady();

  const WorldOptions options_;
  const core::TokenIds token_ids_;
  Timeline timeline_;
  Trace trace_;
  FaultCounts faults_;
  Saboteur saboteur_;
  Network network_;
  Oracle oracle_;
  Cluster cluster_;
  SimAdmin admin_;
  std::vector<SimRule> rules_;
  std::vector<std::unique_ptr<SimClient>> clients_;
  std::vector<std::unique_ptr<SimSentinel>> sentinels_;
  std::vector<std::unique_ptr<SessionClient>> sessions_;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_WORLD_H_
