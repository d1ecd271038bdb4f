// FlakyEtcd: a simulated etcd whose requests and answers get lost.
//
// Thread: any.
#ifndef NOWCALLS_SUPPORT_FLAKY_ETCD_H_
#define NOWCALLS_SUPPORT_FLAKY_ETCD_H_

#include <cstdint>
#include <mutex>
#include <string>

#include "support/fake_etcd.h"

namespace nowcalls::testing {

class FlakyEtcd final : public cluster::Etcd {
 public:
  Result<cluster::TxnReply> Commit(const cluster::Txn& txn) override {
    const std::lock_guard lock(mutex_);
    ++commits_;
    if (Take(&requests_to_lose_)) return Status::Unavailable("etcd is away");
    Result<cluster::TxnReply> reply = etcd_.Commit(txn);
    if (!Take(&answers_to_spare_) && Take(&answers_to_lose_))
      return Status::OutcomeUnknown("etcd has not answered");
    return reply;
  }
  Result<cluster::LeaseTime> Grant(int64_t ttl_ms) override {
    const std::lock_guard lock(mutex_);
    if (away_) return Status::Unavailable("etcd is away");
    return etcd_.Grant(ttl_ms);
  }
  Result<cluster::LeaseTime> Renew(int64_t lease) override {
    const std::lock_guard lock(mutex_);
    if (away_) return Status::OutcomeUnknown("etcd has not answered");
    return etcd_.Renew(lease);
  }
  Status Revoke(int64_t lease) override {
    EndLease(lease);
    return {};
  }
  Status Compact(int64_t /*revision*/) override { return {}; }
  void AwaitChange(const std::string& /*key*/, int64_t /*revision*/, int64_t /*ms*/) override {}
  void EndWait() override {}

  void EndLease(int64_t lease) {
    const std::lock_guard lock(mutex_);
    etcd_.EndLease(lease);
  }
  // Of the next transactions.
  void LoseRequests(int count) {
    const std::lock_guard lock(mutex_);
    requests_to_lose_ = count;
  }
  void LoseAnswers(int count, int behind = 0) {
    const std::lock_guard lock(mutex_);
    answers_to_spare_ = behind;
    answers_to_lose_ = count;
  }
  // Of leases.
  void SetAway(bool away) {
    const std::lock_guard lock(mutex_);
    away_ = away;
  }
  int commits() const {
    const std::lock_guard lock(mutex_);
    return commits_;
  }
  // Nobody else asks meanwhile.
  FakeEtcd* etcd() { return &etcd_; }

 private:
  static bool Take(int* count) {
    if (*count == 0) return false;
    --*count;
    return true;
  }

  mutable std::mutex mutex_;
  FakeEtcd etcd_;
  int requests_to_lose_ = 0;
  int answers_to_spare_ = 0;  // First.
  int answers_to_lose_ = 0;
  bool away_ = false;
  int commits_ = 0;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_FLAKY_ETCD_H_
