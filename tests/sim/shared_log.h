// SharedLog: the log of a simulated cluster, in a simulated etcd.
//
// Thread: one at a time. Members append by transactions (cluster/claimed_log.h). Whoever makes one
// sends, loses and repeats it. A claim goes when its lease ends, which may be early or late.
#ifndef NOWCALLS_SIM_SHARED_LOG_H_
#define NOWCALLS_SIM_SHARED_LOG_H_

#include <cstdint>
#include <functional>
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

  // SimLog. Append is for a log without members.
  Status Append(const ledger::SealedBatch& batch) override;
  Status Sync() override { return {}; }
  Status Read(uint64_t from, const BatchSink& sink) override;
  Status Trim(uint64_t /*number*/) override { return {}; }  // Append has the trim.
  uint64_t last() const override;
  void Cut(uint64_t number) override;

  bool claimed();
  // `answer_lost`: it is asked for again. REQUIRES: !claimed().
  cluster::HeldClaim Claim(const std::string& member, bool answer_lost);
  // False: the lease of this claim is over.
  bool Renew(const cluster::HeldClaim& held);
  // Before its time.
  void EndLease();
  void Heal() { healed_ = true; }
  // Up to where an append may trim; 0: not at all.
  uint64_t TrimTo() const { return trim_to_ ? trim_to_() : 0; }
  void SetTrimTo(std::function<uint64_t()> trim_to) { trim_to_ = std::move(trim_to); }

 private:
  cluster::LogView View() const;
  int64_t DrawLeaseUs();

  const Timeline* const timeline_;
  const FaultPlan* const plan_;
  Prng prng_;
  bool healed_ = false;
  mutable testing::FakeEtcd etcd_;
  const cluster::ClaimedLog txns_{*cluster::Keys::Under("sim")};
  int64_t lease_ = 0;  // Of the last claim.
  int64_t lease_until_us_ = 0;
  std::function<uint64_t()> trim_to_;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SHARED_LOG_H_
