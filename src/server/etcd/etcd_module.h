// EtcdModule: the client of etcd, loaded when it is needed (etcd/README.md), and as whom it asks.
//
// Thread: main. It stays loaded.
#ifndef NOWCALLS_SERVER_ETCD_ETCD_MODULE_H_
#define NOWCALLS_SERVER_ETCD_ETCD_MODULE_H_

#include <functional>
#include <memory>

#include "cluster/etcd.h"
#include "nowcalls/status.h"
#include "server/config/config.h"

namespace nowcalls::server {

using ConnectEtcd = std::function<std::unique_ptr<cluster::Etcd>(const cluster::EtcdOptions& etcd)>;

// From ../lib/nowcalls beside the directory of this program. kIoError: it is not there, or of
// another version.
Result<ConnectEtcd> LoadEtcdModule();

// As whom etcd is asked, by cluster-ca and the settings after it; without endpoints. Reads the
// files. kInvalidArgument names setting and file.
Result<cluster::EtcdOptions> ReadEtcdOptions(const ClusterChoice& choice);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_ETCD_ETCD_MODULE_H_
