// ClusterStore: the log in etcd, with tables of this machine, as one store.
//
// Thread: as of store::Store, but for last and synced.
//
// Tables are synced now and then only: a power cut takes a part of them, and the log has it.
#ifndef NOWCALLS_MEMBER_CLUSTER_STORE_H_
#define NOWCALLS_MEMBER_CLUSTER_STORE_H_

#include <atomic>
#include <cstdint>
#include <functional>

#include "member/etcd_log.h"
#include "store/store.h"

namespace nowcalls::member {

class ClusterStore final : public store::Store {
 public:
  // Both outlive it. `local`: a store of this machine; its log has what its tables have.
  ClusterStore(EtcdLog* log, store::Store* local)
      : log_(log), local_(local), last_(local->applied()), synced_(local->applied()) {}

  // Thread: any. The last batch in the tables, and the last that no power cut takes from them.
  uint64_t last() const { return last_; }
  uint64_t synced() const { return synced_; }

  Status Append(const ledger::SealedBatch& batch) override { return log_->Append(batch); }
  Status Read(uint64_t from, const BatchSink& sink) override { return log_->Read(from, sink); }
  Status Trim(uint64_t number) override { return log_->Trim(number); }
  // While the log has nothing behind them, the tables are what a single server left.
  bool MayLackBatches() const override {
    return !log_->OutlivesMachine() && local_->MayLackBatches();
  }
  bool OutlivesMachine() const override { return log_->OutlivesMachine(); }
  Status CommitTelling(const ledger::SealedBatch& batch,
                       const std::function<void()>& durable) override;

  Status Load(ledger::EntityVisitor* visitor) override { return local_->Load(visitor); }
  uint64_t applied() const override { return local_->applied(); }
  Status Apply(const ledger::SealedBatch& batch) override;
  void Scan(const ledger::ScanRequest& request, ledger::ScanResult* result) override {
    local_->Scan(request, result);
  }
  Status Sync() override;

  Status CheckPlace() override { return local_->CheckPlace(); }
  std::optional<uint64_t> FreeBytes() override { return local_->FreeBytes(); }
  std::optional<uint64_t> FreeFiles() override { return local_->FreeFiles(); }

 private:
  EtcdLog* const log_;
  store::Store* const local_;
  std::atomic<uint64_t> last_;
  std::atomic<uint64_t> synced_;
};

}  // namespace nowcalls::member

#endif  // NOWCALLS_MEMBER_CLUSTER_STORE_H_
