// What a simulated server loses when its process ends.
//
// Thread: one at a time.
#ifndef NOWCALLS_SIM_SIM_PROCESS_H_
#define NOWCALLS_SIM_SIM_PROCESS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "cluster/claimed_log.h"
#include "cluster/lease.h"
#include "core/books.h"
#include "engine/engine.h"
#include "ledger/commit_batch.h"
#include "ledger/scan.h"
#include "node/turn.h"
#include "recovery/recovery.h"
#include "sim/sim_server.h"

namespace nowcalls::sim {

inline constexpr engine::ConnectionId kNobody = UINT32_MAX;

struct SimServer::Process {
  Process(recovery::RecoveredLedger recovered, const std::optional<cluster::HeldClaim>& its_claim,
          SimServer* driver, Instant now)
      : ledger(std::move(recovered)),
        claim(its_claim),
        engine(engine::EngineOptions{.limits = ledger.core->books().options().limits,
                                     .version = "0.1.0",
                                     .durability = "sync",
                                     .data_dir = "/data",
                                     .expire_strategy = "default"},
               ledger.core.get(), driver, now),
        turn(&engine, driver, driver, its_claim ? 1 : 0) {}

  recovery::RecoveredLedger ledger;
  const std::optional<cluster::HeldClaim> claim;  // In a cluster.
  cluster::Lease lease;
  bool claim_lost = false;  // As etcd has told.
  engine::Engine engine;
  node::Turn turn;
  std::map<engine::ConnectionId, LinkId> links;
  engine::ConnectionId observer = kNobody;
  std::string observed;

  // The commit thread.
  std::optional<ledger::CommitBatch> commit;  // A copy of the batch that is not durable yet.
  bool applying = false;                      // The batch before it, which is durable.
  bool commit_held = false;                   // Its commit begins when HoldCommits ends.
  bool commit_done = false;                   // And the loop does not know yet.
  bool commit_reported = false;               // By a saboteur, before its time.
  bool commit_refused = false;                // Another node has the claim.

  // The scan thread.
  std::optional<ledger::ScanResult> scanned;

  bool to_read = false;
  int64_t boottime_max_ms = 0;  // Of what it has read.
  int64_t busy_until_us = 0;
  std::optional<int64_t> turn_at_us;

  bool in_turn = false;
  bool terminated = false;       // SIGTERM was sent.
  std::optional<Fault> died_of;  // Within the turn: nothing that it still does is seen.
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SIM_PROCESS_H_
