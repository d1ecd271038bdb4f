// Client: requests to etcd over gRPC.
//
// Thread: any; each call blocks until its answer or its time limit. A call asks one endpoint; after
// a failure the next call asks another. Whoever needs an answer asks again.
#ifndef NOWCALLS_ETCD_CLIENT_H_
#define NOWCALLS_ETCD_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/host_port.h"
#include "cluster/etcd.h"
#include "nowcalls/status.h"

namespace nowcalls::etcd {

struct ClientOptions {
  std::vector<HostPort> endpoints;  // At least one.
  int64_t answer_ms_max = 1'000;

  // Of TLS: PEM. With `tls` and without `ca`: the machine's own authorities.
  bool tls = false;
  std::string ca{};
  std::string certificate{};  // Of the client, with `key`; empty: none.
  std::string key{};

  std::string user{};  // Empty: none.
  std::string password{};
};

struct LeaseTime {
  int64_t id = 0;
  int64_t ttl_ms = 0;
};

class Client final : public cluster::Etcd {
 public:
  explicit Client(ClientOptions options);
  ~Client() override;

  Result<cluster::TxnReply> Commit(const cluster::Txn& txn) override;

  // etcd may give more time than is asked for. Errors as those of Commit.
  Result<LeaseTime> Grant(int64_t ttl_ms);
  // kNotFound: the lease is over, and its keys are gone.
  Result<LeaseTime> Renew(int64_t lease);
  // The lease and its keys go. One that is gone already is no error.
  Status Revoke(int64_t lease);

  // Forgets what was before `revision`. One that is forgotten already is no error.
  // kInvalidArgument: it is yet to come.
  Status Compact(int64_t revision);

  // Returns after `wait_ms`, or earlier when `key` changes behind `revision`, or when the
  // connection breaks. A change may go unseen: look at the key afterwards.
  void AwaitChange(const std::string& key, int64_t revision, int64_t wait_ms);

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace nowcalls::etcd

#endif  // NOWCALLS_ETCD_CLIENT_H_
