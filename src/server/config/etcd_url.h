// EtcdUrl: where something is in etcd, as settings name it.
//
// Thread: any; pure.
#ifndef NOWCALLS_SERVER_CONFIG_ETCD_URL_H_
#define NOWCALLS_SERVER_CONFIG_ETCD_URL_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/host_port.h"
#include "nowcalls/status.h"

namespace nowcalls::server {

struct EtcdUrl {
  std::vector<HostPort> endpoints;  // At least one.
  bool tls = false;
  std::string path;  // From the slash on.
};

// Begins with etcd:// or etcds://.
bool IsEtcdUrl(std::string_view text);

// etcd://HOST:PORT,HOST:PORT/WHAT. kInvalidArgument completes a sentence that begins with the
// setting.
Result<EtcdUrl> ParseEtcdUrl(std::string_view text, std::string_view what);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CONFIG_ETCD_URL_H_
