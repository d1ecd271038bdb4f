// FakeEtcd: the keys of an etcd in memory, with revisions, versions and leases as etcd has them.
//
// Thread: one at a time. tests/integration compares it with a real one.
#ifndef NOWCALLS_SUPPORT_FAKE_ETCD_H_
#define NOWCALLS_SUPPORT_FAKE_ETCD_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cluster/etcd.h"

namespace nowcalls::testing {

class FakeEtcd : public cluster::Etcd {
 public:
  Result<cluster::TxnReply> Commit(const cluster::Txn& txn) override;

  Result<cluster::LeaseTime> Grant(int64_t ttl_ms) override {
    return cluster::LeaseTime{.id = GrantLease(), .ttl_ms = ttl_ms};
  }
  // Leases end by EndLease alone.
  Result<cluster::LeaseTime> Renew(int64_t lease) override;
  Status Revoke(int64_t lease) override {
    EndLease(lease);
    return {};
  }
  Status Compact(int64_t /*revision*/) override { return {}; }
  void AwaitChange(const std::string& /*key*/, int64_t /*revision*/, int64_t /*ms*/) override {}
  void EndWait() override {}

  int64_t GrantLease();
  // Its keys go.
  void EndLease(int64_t lease);

  int64_t revision() const { return revision_; }
  const std::map<std::string, cluster::Row>& rows() const { return rows_; }

 private:
  bool Holds(const cluster::Compare& compare) const;
  std::vector<cluster::Row> Find(const cluster::Operation& get) const;
  // Whether it changed something, in revision `revision`.
  bool Apply(const cluster::Operation& operation, int64_t revision);

  std::map<std::string, cluster::Row> rows_;
  int64_t revision_ = 1;
  int64_t last_lease_ = 0;
  std::set<int64_t> leases_;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_FAKE_ETCD_H_
