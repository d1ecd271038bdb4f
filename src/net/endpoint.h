// Endpoint: where a server is reached.
//
// Thread: any.
#ifndef NOWCALLS_NET_ENDPOINT_H_
#define NOWCALLS_NET_ENDPOINT_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/host_port.h"
#include "nowcalls/status.h"

namespace nowcalls::net {

struct Endpoint {
  HostPort tcp{};
  std::string path{};  // Not empty: of a Unix socket; `tcp` is not used.

  static Endpoint Tcp(HostPort address) { return {.tcp = std::move(address)}; }
  static Endpoint Unix(std::string path) { return {.path = std::move(path)}; }
  bool is_unix() const { return !path.empty(); }
  std::string ToString() const { return is_unix() ? path : tcp.ToString(); }
  bool operator==(const Endpoint&) const = default;
};

// The file of a server's own Unix socket, in its data directory.
inline constexpr std::string_view kServerSocketName = "server.sock";

// A server's, as users name it: "HOST:PORT" with a port, or the path of a Unix socket, which begins
// with "/", "./" or "../". kInvalidArgument.
Result<Endpoint> ParseServer(std::string_view text);
// Several, with commas: members of a cluster. A path has none.
Result<std::vector<Endpoint>> ParseServers(std::string_view text);

}  // namespace nowcalls::net

#endif  // NOWCALLS_NET_ENDPOINT_H_
