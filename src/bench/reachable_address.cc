#include "bench/reachable_address.h"

#include <sys/socket.h>

#include <cerrno>
#include <system_error>

#include "net/socket.h"

namespace nowcalls::bench {

Result<sockaddr_storage> ReachableAddress(const HostPort& peer, int64_t deadline_ms) {
  // The connection is only a test, and is closed again.
  const Result<net::Socket> connected = net::Socket::Connect(net::Endpoint::Tcp(peer), deadline_ms);
  if (!connected.ok()) return connected.status();
  sockaddr_storage found{};
  socklen_t size = sizeof(found);
  if (getpeername(connected->fd(), reinterpret_cast<sockaddr*>(&found), &size) == 0) return found;
  return Status::Unavailable(std::generic_category().message(errno));
}

}  // namespace nowcalls::bench
