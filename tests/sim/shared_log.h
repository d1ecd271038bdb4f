// SharedLog: the log of a simulated cluster, in a simulated etcd.
//
// Thread: one at a time. Members append by transactions (cluster/claimed_log.h). Whoever makes one
// sends, loses and repeats it. A claim goes when its lease ends, which may be early or late. etcd
// may lose the last that it took.
#ifndef NOWCALLS_SIM_SHARED_LOG_H_
#define NOWCALLS_SIM_SHARED_LOG_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/prng.h"
#include "cluster/claimed_log.h"
#include "sim/faults.h"
#include "sim/sim_log.h"
#include "sim/timeline.h"
#include "support/fake_etcd.h"

namespace nowcalls::sim {

class SharedLog final : public SimLog {
 public:
  // All outlive it.
  SharedLog(const Timeline* timeline, const FaultPlan* plan, uint64_t seed)
      : timeline_(timeline), plan_(plan), prng_(seed) {}

  const cluster::ClaimedLog& txns() const { return txns_; }
  cluster::TxnReply Commit(const cluster::Txn& txn);
  cluster::LogView View() const;

  // SimLog. Append is for a log without members.
  Status Append(const ledger::SealedBatch& batch) override;
  Status Sync() override { return {}; }
  Status Read(uint64_t from, const BatchSink& sink) override;
  Status Trim(uint64_t /*number*/) override { return {}; }  // Append has the trim.
  bool OutlivesMachine() const override;
  uint64_t last() const override;
  void Cut(uint64_t number) override;

  bool claimed();
  // How etcd is asked for a claim: in vain, and again, or by what it showed before the last one.
  struct Asking {
    bool answer_lost = false;
    bool stale = false;
  };
  // nullopt: another has it. REQUIRES: !claimed() unless stale.
  std::optional<cluster::HeldClaim> Claim(const std::string& member, const Asking& asking);
  // False: the lease of this claim is over.
  bool Renew(const cluster::HeldClaim& held);
  // Before its time.
  void EndLease();
  // etcd is as it was before it took batch `number`. False: that was too long ago.
  bool LoseFrom(uint64_t number);
  // How often it was. Requests that were on their way then do not arrive.
  int losses() const { return losses_; }
  void Heal() { healed_ = true; }
  // Up to where an append may trim; 0: not at all.
  uint64_t TrimTo() const { return trim_to_ ? trim_to_() : 0; }
  void SetTrimTo(std::function<uint64_t()> trim_to) { trim_to_ = std::move(trim_to); }

 private:
  int64_t DrawLeaseUs();

  const Timeline* const timeline_;
  const FaultPlan* const plan_;
  Prng prng_;
  bool healed_ = false;
  int losses_ = 0;
  mutable testing::FakeEtcd etcd_;
  const cluster::ClaimedLog txns_{*cluster::Keys::Under("sim")};
  std::deque<testing::FakeEtcd> past_;  // If it may lose something.
  cluster::LogView free_;               // What was to be seen before the last claim.
  int64_t lease_ = 0;                   // Of the last claim.
  int64_t lease_until_us_ = 0;
  std::function<uint64_t()> trim_to_;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SHARED_LOG_H_
