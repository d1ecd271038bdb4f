#include "support/tcp.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "base/clock.h"

namespace nowcalls::testing {

int ListenOnLoopback(uint16_t* port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof(address);
  if (fd < 0 || bind(fd, generic, size) != 0 || listen(fd, 16) != 0 ||
      getsockname(fd, generic, &size) != 0) {
    throw std::runtime_error("cannot listen on 127.0.0.1");
  }
  *port = ntohs(address.sin_port);
  return fd;
}

uint16_t FreePort() {
  uint16_t port = 0;
  close(ListenOnLoopback(&port));
  return port;
}

bool WaitFor(int fd, int16_t events, int64_t deadline_ms) {
  for (;;) {
    const int64_t left_ms = std::max<int64_t>(0, deadline_ms - BoottimeMs());
    pollfd entry{fd, events, 0};
    const int ready = poll(&entry, 1, static_cast<int>(left_ms));
    if (ready > 0) return true;
    if (ready == 0 && left_ms == 0) return false;
    if (ready < 0 && errno != EINTR) return false;
  }
}

int ConnectTo(const std::string& address, const std::string& source) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return -1;
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_port = htons(static_cast<uint16_t>(std::stoul(address.substr(colon + 1))));
  if (inet_pton(AF_INET, address.substr(0, colon).c_str(), &peer.sin_addr) != 1) return -1;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  sockaddr_in from{};
  from.sin_family = AF_INET;
  const bool bound =
      source.empty() || (inet_pton(AF_INET, source.c_str(), &from.sin_addr) == 1 &&
                         bind(fd, reinterpret_cast<sockaddr*>(&from), sizeof(from)) == 0);
  if (!bound || connect(fd, reinterpret_cast<sockaddr*>(&peer), sizeof(peer)) != 0) {
    close(fd);
    return -1;
  }
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  return fd;
}

std::string LocalAddressOf(int fd) {
  sockaddr_in own{};
  socklen_t size = sizeof(own);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) != 0) return "";
  char host[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &own.sin_addr, host, sizeof(host));
  return std::string(host) + ":" + std::to_string(ntohs(own.sin_port));
}

}  // namespace nowcalls::testing
