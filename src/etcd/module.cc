// The client as a module, which a server loads when it is a member of a cluster (README.md).
#include "cluster/etcd.h"
#include "etcd/client.h"
#include "nowcalls/export.h"
#include "nowcalls_version.h"

// Modules of another version are not loaded: both sides must have the same types.
extern "C" NOWCALLS_EXPORT const char* nowcalls_etcd_version() { return NOWCALLS_VERSION; }

// The caller owns the result.
extern "C" NOWCALLS_EXPORT nowcalls::cluster::Etcd* nowcalls_etcd_connect(
    const nowcalls::cluster::EtcdOptions* options) {
  return new nowcalls::etcd::Client(*options);
}
