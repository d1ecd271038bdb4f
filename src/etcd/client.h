// Client: requests to etcd over gRPC.
//
// Thread: any; each call blocks until its answer or its time limit. A call asks one endpoint; after
// a failure the next call asks another. Whoever needs an answer asks again.
#ifndef NOWCALLS_ETCD_CLIENT_H_
#define NOWCALLS_ETCD_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "cluster/etcd.h"
#include "nowcalls/status.h"

namespace nowcalls::etcd {

class Client final : public cluster::Etcd {
 public:
  explicit Client(cluster::EtcdOptions options);
  ~Client() override;

  Result<cluster::TxnReply> Commit(const cluster::Txn& txn) override;

  Result<cluster::LeaseTime> Grant(int64_t ttl_ms) override;
  Result<cluster::LeaseTime> Renew(int64_t lease) override;
  Status Revoke(int64_t lease) override;
  Status Compact(int64_t revision) override;
  void AwaitChange(const std::string& key, int64_t revision, int64_t wait_ms) override;
  void EndWait() override;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace nowcalls::etcd

#endif  // NOWCALLS_ETCD_CLIENT_H_
