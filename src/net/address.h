// Socket addresses: from names to bytes and back.
//
// Thread: any. Resolving may block, so not on the loop; net/resolve.h has a deadline.
#ifndef NOWCALLS_NET_ADDRESS_H_
#define NOWCALLS_NET_ADDRESS_H_

#include <sys/socket.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/host_port.h"
#include "nowcalls/status.h"

namespace nowcalls::net {

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

// Of a Unix socket. A path that is too long for it goes by way of its directory, which stays open.
class UnixAddress {
 public:
  // kIoError: its directory cannot be opened.
  static Result<UnixAddress> Of(const std::string& path);
  UnixAddress(UnixAddress&& other) noexcept
      : address_(other.address_), directory_fd_(std::exchange(other.directory_fd_, -1)) {}
  UnixAddress& operator=(UnixAddress&&) = delete;
  ~UnixAddress();

  const SocketAddress& address() const { return address_; }

 private:
  UnixAddress() = default;

  SocketAddress address_;
  int directory_fd_ = -1;
};

// A nonblocking socket at the first address of `name`. `set_options` runs before bind; false:
// failed, with errno. kIoError: the reason is also in errno.
Result<int> Listen(const HostPort& name, int backlog, bool (*set_options)(int fd));

// The same at a Unix socket, which its owner alone may connect to. Replaces a socket that is there.
// kIoError: also if anything else is there.
Result<int> ListenUnix(const std::string& path, int backlog);

// An empty host: that end is gone, or not connected.
HostPort RemoteEndOf(int fd);
HostPort LocalEndOf(int fd);

// Both ends have the same address, or are of a Unix socket.
bool IsFromThisHost(int fd);

// As ToHostPort writes it; none: `text` is no address in digits.
std::optional<std::string> AddressInDigits(const std::string& text);

// "127.0.0.1:18730", "[::1]:18730"; of a Unix socket "unix:0".
HostPort ToHostPort(const SocketAddress& address);

}  // namespace nowcalls::net

#endif  // NOWCALLS_NET_ADDRESS_H_
