#include "net/peer.h"

#include <sys/socket.h>

#include "net/address.h"

namespace nowcalls::net {

Peer PeerOf(int fd, const SocketAddress& address, uint64_t number) {
  if (address.bytes.ss_family != AF_UNIX) {
    const HostPort remote = ToHostPort(address);
    return {.name = remote.ToString(),
            .host = remote.host,
            .loopback = IsLoopback(address) || LocalEndOf(fd).host == remote.host};
  }
  ucred found{};
  socklen_t size = sizeof(found);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &found, &size) != 0)
    return {.name = "unix:0/" + std::to_string(number), .loopback = true};
  return {.name = "unix:" + std::to_string(found.pid) + "/" + std::to_string(number),
          .credentials = UnixCredentials{found.pid, found.uid, found.gid},
          .loopback = true};
}

}  // namespace nowcalls::net
