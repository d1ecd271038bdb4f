// Addresses of sockets: from names to bytes and back.
//
// Thread: any. Resolve may block on the system's resolver; it is used before the server serves.
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

// The addresses of the host, each once, in the resolver's order; at least one. kInvalidArgument
// names the host and the resolver's reason.
Result<std::vector<SocketAddress>> ResolveAll(const HostPort& name);
// The first of them, which is the one to listen on.
Result<SocketAddress> Resolve(const HostPort& name);

// 127.0.0.0/8, ::1, or the former written as an IPv6 address.
bool IsLoopback(const SocketAddress& address);

// A socket that does not block and listens at the first address of `name`. `set_options` is called
// before it is bound; false with errno if it failed. kIoError names the address and the reason,
// which is errno then.
Result<int> Listen(const HostPort& name, int backlog, bool (*set_options)(int fd));

// The ends of a socket; an empty host if that end is gone, or not connected.
HostPort PeerOf(int fd);
HostPort LocalEndOf(int fd);

// Both ends of the connected socket have the same address, so its peer is on this machine.
bool IsFromThisHost(int fd);

// An address in digits as ToHostPort writes it; none if the text is another.
std::optional<std::string> AddressInDigits(const std::string& text);

// "127.0.0.1:18730", "[::1]:18730"; the address in digits.
HostPort ToHostPort(const SocketAddress& address);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_LISTEN_ADDRESS_H_
