// SimServer: one machine with a server process on it that is killed and started again.
//
// Thread: one at a time. The real recovery, core, engine and turn (node/turn.h), with the simulated
// network and store in the place of sockets, commit thread and scan thread.
//
// A process dies before any event and before any effect that the world could see: between them only
// memory changes, and that is lost. The batch that was submitted then survives whole, or not at
// all.
#ifndef NOWCALLS_SIM_SIM_SERVER_H_
#define NOWCALLS_SIM_SIM_SERVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/prng.h"
#include "cluster/claimed_log.h"
#include "core/core.h"
#include "engine/engine.h"
#include "ledger/clock.h"
#include "node/turn.h"
#include "recovery/recovery.h"
#include "sim/clock_gap.h"
#include "sim/faults.h"
#include "sim/machine.h"
#include "sim/network.h"
#include "sim/saboteur.h"
#include "sim/shared_log.h"
#include "sim/sim_store.h"
#include "sim/timeline.h"
#include "sim/trace.h"

namespace nowcalls::sim {

// With which a node of a cluster leads.
struct Takeover {
  cluster::HeldClaim claim;
  int64_t claimed_ms = 0;           // By the boot clock of its machine.
  ledger::ObservedTime observed{};  // While it stood by.
};

// What a simulated server shares with the world.
struct ServerWorld {
  Timeline* timeline = nullptr;
  Trace* trace = nullptr;
  const FaultPlan* plan = nullptr;
  FaultCounts* faults = nullptr;
  Machine* machine = nullptr;
  SimStore* store = nullptr;
  SharedLog* shared = nullptr;  // Of a cluster.
  size_t number = 0;            // Of the node.
  Network* network = nullptr;
  Saboteur* saboteur = nullptr;
};

class SimServer final : public engine::Driver, private node::Io, private ledger::Clock {
 public:
  struct Watch {
    std::function<void(bool orderly)> died;  // The ledger is what the process left.
    // In the place of `died`, in a cluster; `left` follows when the next one has the ledger.
    std::function<void(bool orderly)> stopped{};
    std::function<void()> left{};
    std::function<void()> ready;  // Recovered; no client has been heard yet.
    // Until then (milliseconds) its loop or its disk stands still, or it ends.
    std::function<void(int64_t)> hindered{};
    std::function<void(int64_t by_ms, int64_t stands_ms)>
        set_back{};                   // The boot clock; `hindered` follows.
    std::function<void()> synced{};   // All that is in the ledger outlives the machine.
    std::function<void()> lost{};     // The machine has lost batches; `died` follows.
    std::function<void()> deposed{};  // After `died`: its node goes on as a standby.
    std::function<void(uint64_t batch)> committed{};  // To the log of a cluster.
  };

  SimServer(const ServerWorld& world, const core::CoreOptions& options, uint64_t seed);
  ~SimServer() override;

  void SetWatch(Watch watch) { watch_ = std::move(watch); }

  // The process is in the middle of a turn that lasts until then: it has seen it, the world not.
  int64_t ahead_until_us() const { return ahead_until_us_; }

  // Leads, in a cluster with a claim, which it renews from now on. Not ok: the server refuses to
  // start, and never will.
  // REQUIRES: ahead_until_us() has come.
  Status Start(const std::optional<Takeover>& takeover = {});
  bool runs() const { return process_ != nullptr; }
  size_t number() const { return world_.number; }
  ClockGap clock_gap() const { return clock_gap_; }  // Since the process before.

  // The network has something to poll.
  void Arrived();

  // --- What happens to the process. ---
  void Kill();
  void Reboot();
  void KillSoon(int calls);  // Between two of the next calls of the engine.
  void RebootSoon(int calls);
  void Terminate();  // SIGTERM.
  // The batch under way, if there is one, comes to the log now. Of a cluster.
  void Land();
  void Stall(int64_t duration_us);
  // The machine's boot clock. The ledger's stands still until the boot clock has caught up.
  void StepBootClockBack(int64_t by_ms);
  // Of a cluster: what it sends to etcd is lost.
  void CutOff(int64_t duration_us);
  // While on, no commit that begins comes to its end.
  void HoldCommits(bool on);
  // Whether the batch under way survives the next death; by seed unless told.
  void SurviveNext(bool survives) { survives_ = survives; }
  // No fault from now on, also of those that were announced.
  void Heal();

  // nowCalls by lane (lanes.h), as the methods `flows` and `params` tell it. REQUIRES: runs(), and
  // nothing has happened since Start.
  std::map<int64_t, int64_t> AskFlows();

  // engine::Driver.
  void Write(std::span<engine::Output> outputs) override;
  void Close(engine::ConnectionId id, bool flush) override;
  void SetReading(engine::ConnectionId id, bool on) override;
  void Log(engine::Severity severity, LogTopic topic, std::string_view message,
           const LogFields& fields) override;
  Status BeginBackup(const engine::BackupJob& job) override;

 private:
  struct Process;

  // ledger::Clock.
  Instant Now() const override;
  ClockSample Sample() const override;

  // node::Io.
  bool Commit(const ledger::CommitBatch& batch, bool at_once) override;
  void Scan(const ledger::ScanRequest& asked) override;
  bool TakeMoreToRead() override;
  void Polled(Instant /*now*/) override {}
  Instant NextWork() const override { return kNever; }
  bool answers_later() const override { return false; }
  void LeftUnanswered(size_t /*connections*/) override {}
  void Disconnect(Instant now) override;
  bool connected() const override;
  void CloseStore() override;
  void EndIsLate() override { Die(Fault::kCrash); }
  void Abandon() override { world_.network->ServerDied(world_.number); }

  // The result of the request.
  std::string Observe(const wire::OutputBuffer& request);
  void AskKeys(int64_t flow, std::map<int64_t, int64_t>* now_calls);
  void RequestTurn(int64_t at_us);
  void Turn();
  bool Poll();
  bool TellCommitDone();
  bool PollLink(LinkId id);
  bool ReadLink(LinkId id);
  void Pump();
  bool CommitHere(const ledger::CommitBatch& batch);
  int64_t DrawCommitUs();
  void StartCommit();
  void FinishCommit();
  void Send(uint64_t number);
  cluster::Txn TxnOf(const ledger::CommitBatch& batch) const;
  bool IsSent(uint64_t number) const;
  void RenewSoon();
  void Renew();
  void OnRenewed(int64_t sent_ms, bool renewed);
  bool LeaseIsOver() const;
  void Depose();
  ClockGap GapOf(const recovery::RecoveredLedger& ledger,
                 const std::optional<Takeover>& takeover) const;
  bool is_cut_off() const { return !healed_ && world_.timeline->now_us() < cut_off_until_us_; }
  void OnAnswered(uint64_t number, const cluster::TxnReply& reply);
  void Committed();
  void EndRefused();
  void Retire();
  void Die(Fault cause);
  void Bury(Fault cause);
  void GoDown();
  void Write(const ledger::CommitBatch& batch);
  void Append(const ledger::CommitBatch& batch);  // To the log alone.
  void Sync() const;
  void Hindered(int64_t duration_ms) const;
  // Counts a call; false: the process died instead of making it.
  bool Lives();
  bool Happens(uint32_t chance) { return !healed_ && prng_.ChancePerMillion(chance); }
  int64_t AheadMs() const;

  const ServerWorld world_;
  const core::CoreOptions options_;
  Prng prng_;
  Watch watch_;
  std::unique_ptr<Process> process_;
  uint64_t incarnation_ = 0;  // Of what was planned for a process.
  int calls_left_ = -1;       // Until it is killed; below 0: it is not.
  bool reboots_ = false;      // It is the machine that will go down.
  ClockGap clock_gap_ = ClockGap::kNone;
  bool hold_commits_ = false;
  bool first_batch_ = true;  // Of the process: it is synced in any case.
  bool sync_planned_ = false;
  bool healed_ = false;
  std::optional<bool> survives_;
  int64_t ahead_until_us_ = 0;
  int64_t cut_off_until_us_ = 0;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SIM_SERVER_H_
