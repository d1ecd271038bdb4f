// EtcdLog: a cluster's log in etcd as a member reads and appends it.
//
// Thread: that of store::Log, but for GiveUp, Trim and bytes.
//
// A request without an answer is sent again until it has one: only the log knows whether a batch is
// in it.
#ifndef NOWCALLS_MEMBER_ETCD_LOG_H_
#define NOWCALLS_MEMBER_ETCD_LOG_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "cluster/claimed_log.h"
#include "cluster/etcd.h"
#include "cluster/keys.h"
#include "cluster/trim_plan.h"
#include "nowcalls/status.h"
#include "store/log.h"

namespace nowcalls::member {

class EtcdLog final : public store::Log {
 public:
  // On the thread of the append: etcd has not answered it, and why; ok: now it has.
  using Trouble = std::function<void(const Status& why)>;

  // `etcd` outlives it. `bytes_max`: beyond them the log forgets what a member lacks.
  EtcdLog(cluster::Etcd* etcd, cluster::Keys keys, uint64_t bytes_max, Trouble trouble);

  const cluster::ClaimedLog& txns() const { return txns_; }
  // As of the last Read.
  const cluster::LogView& view() const { return view_; }

  // Read asks it before it shows a batch. Empty: all may be shown.
  void SetAdmit(std::function<Status(const cluster::LogView&)> admit) { admit_ = std::move(admit); }

  // Later appends are of this claim. REQUIRES: Read has come to the end of the log.
  void Hold(const cluster::HeldClaim& held);
  // Thread: any. Appends of the claim fail from now on, also one under way.
  void GiveUp();

  // kFailedPrecondition: deposed, or GiveUp.
  Status Append(const ledger::SealedBatch& batch) override;
  Status Sync() override { return {}; }  // What was appended is durable.
  // Also the codes of cluster::Etcd::Commit.
  Status Read(uint64_t from, const BatchSink& sink) override;
  // All members have these on disk. Thread: any. The next append trims.
  Status Trim(uint64_t number) override;
  // Batches before the first slot were of one machine.
  bool OutlivesMachine() const override {
    return view_.lineage && view_.end() > view_.lineage->base;
  }

  // Of its slots, roughly; while this member writes.
  uint64_t bytes() const { return bytes_; }

 private:
  Result<cluster::TxnReply> CommitAtLast(const cluster::Txn& txn);
  Status ReadSlot(uint64_t number, const std::string& slot, const BatchSink& sink);
  Status Deposed(uint64_t number) const;
  bool Pause();

  cluster::Etcd* const etcd_;
  const uint64_t bytes_max_;
  const cluster::ClaimedLog txns_;
  const Trouble trouble_;
  std::function<Status(const cluster::LogView&)> admit_;
  cluster::LogView view_;
  std::optional<cluster::HeldClaim> held_;
  std::optional<cluster::TrimPlan> trim_plan_;  // While held_.
  uint64_t last_ = 0;                           // Slot, likewise.
  uint64_t trimmed_ = 0;
  std::atomic<uint64_t> synced_ = 0;  // As Trim says.
  std::atomic<uint64_t> bytes_ = 0;

  std::mutex mutex_;
  std::condition_variable given_up_;
  bool gave_up_ = false;  // Guarded by mutex_.
};

}  // namespace nowcalls::member

#endif  // NOWCALLS_MEMBER_ETCD_LOG_H_
