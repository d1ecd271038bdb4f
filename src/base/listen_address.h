// Socket addresses: from names to bytes and back.
//
// Thread: any. Resolving may block, so not on the loop.
#ifndef NOWCALLS_BASE_LISTEN_ADDRESS_H_
#define NOWCALLS_BASE_LISTEN_ADDRESS_H_

#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include "base/host_port.h"
#include "nowcalls/status.h"

namespace nowcalls {

struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t size = sizeof(sockaddr_storage);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
};

// Each address once, in the resolver's order, at least one. kInvalidArgument names host and reason.
Result<std::vector<SocketAddress>> ResolveAll(const HostPort& name);
// The first, to listen on.
Result<SocketAddress> Resolve(const HostPort& name);

// 127.0.0.0/8, also mapped to IPv6, or ::1.
bool IsLoopback(const SocketAddress& address);

// A nonblocking socket at the first address of `name`. `set_options` runs before bind; false:
// failed, with errno. kIoError: the reason is also in errno.
Result<int> Listen(const HostPort& name, int backlog, bool (*set_options)(int fd));

// An empty host: that end is gone, or not connected.
HostPort PeerOf(int fd);
HostPort LocalEndOf(int fd);

// Both ends have the same address.
bool IsFromThisHost(int fd);

// As ToHostPort writes it; none: `text` is no address in digits.
std::optional<std::string> AddressInDigits(const std::string& text);

// "127.0.0.1:18730", "[::1]:18730".
HostPort ToHostPort(const SocketAddress& address);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_LISTEN_ADDRESS_H_
