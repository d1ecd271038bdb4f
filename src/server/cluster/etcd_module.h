// EtcdModule: the client of etcd, loaded when it is needed (etcd/README.md).
//
// Thread: main. It stays loaded.
#ifndef NOWCALLS_SERVER_CLUSTER_ETCD_MODULE_H_
#define NOWCALLS_SERVER_CLUSTER_ETCD_MODULE_H_

#include <functional>
#include <memory>

#include "cluster/etcd.h"
#include "nowcalls/status.h"

namespace nowcalls::server {

using ConnectEtcd = std::function<std::unique_ptr<cluster::Etcd>(const cluster::EtcdOptions& etcd)>;

// From ../lib/nowcalls beside the directory of this program. kIoError: it is not there, or of
// another version.
Result<ConnectEtcd> LoadEtcdModule();

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CLUSTER_ETCD_MODULE_H_
