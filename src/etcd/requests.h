// Transactions of a cluster as etcd's messages, and answers back.
//
// Thread: any; pure.
#ifndef NOWCALLS_ETCD_REQUESTS_H_
#define NOWCALLS_ETCD_REQUESTS_H_

#include <grpcpp/support/status.h>

#include <string_view>

#include "cluster/etcd.h"
#include "etcd/etcd.pb.h"
#include "nowcalls/status.h"

namespace nowcalls::etcd {

etcdserverpb::TxnRequest RequestOf(const cluster::Txn& txn);
cluster::TxnReply ReplyOf(const etcdserverpb::TxnResponse& response);

// The codes of cluster::Etcd::Commit; kNotFound of a lease. The message names the endpoint.
Status StatusOf(const grpc::Status& status, std::string_view endpoint);

// The token of a user is unknown to etcd, or over.
bool IsOldToken(const grpc::Status& status);

}  // namespace nowcalls::etcd

#endif  // NOWCALLS_ETCD_REQUESTS_H_
