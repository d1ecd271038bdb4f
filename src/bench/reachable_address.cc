#include "bench/reachable_address.h"

#include <netdb.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/clock.h"
#include "client/resolve.h"

namespace nowcalls::bench {
namespace {

// 0, or the errno of why not.
int TryConnect(int fd, const addrinfo& address, int64_t deadline_ms) {
  if (connect(fd, address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd ready{fd, POLLOUT, 0};
  const int64_t left_ms = std::clamp<int64_t>(deadline_ms - BoottimeMs(), 0, INT32_MAX);
  const int changed = poll(&ready, 1, static_cast<int>(left_ms));
  if (changed < 0) return errno;
  if (changed == 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace

Result<sockaddr_storage> ReachableAddress(const HostPort& peer, int64_t deadline_ms) {
  const Result<client::Addresses> addresses = client::Resolve(peer, deadline_ms);
  if (!addresses.ok()) return addresses.status();
  int error = 0;
  for (const addrinfo* at = addresses->get(); at != nullptr; at = at->ai_next) {
    const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    error = fd < 0 ? errno : TryConnect(fd, *at, deadline_ms);
    if (fd >= 0) close(fd);
    if (error != 0) continue;
    sockaddr_storage found{};
    std::memcpy(&found, at->ai_addr, std::min<size_t>(at->ai_addrlen, sizeof(found)));
    return found;
  }
  return Status::Unavailable(std::generic_category().message(error));
}

}  // namespace nowcalls::bench
