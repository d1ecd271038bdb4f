#include "net/address.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include "base/text.h"

namespace nowcalls::net {
namespace {

// Copies, since a sockaddr_storage may not be read through another type.
template <typename T>
T As(const SocketAddress& address) {
  T copy{};
  std::memcpy(&copy, &address.bytes, sizeof(copy));
  return copy;
}

bool IsLoopbackV4(uint32_t big_endian) { return ntohl(big_endian) >> 24 == IN_LOOPBACKNET; }

}  // namespace

Result<std::vector<SocketAddress>> ResolveAll(const HostPort& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(name.host.c_str(), std::to_string(name.port).c_str(), &hints, &found);
  if (error != 0) {
    return Status::InvalidArgument("no address for host " + Quoted(name.host) + ": " +
                                   gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, &freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    SocketAddress address;
    std::memcpy(&address.bytes, info->ai_addr, info->ai_addrlen);
    address.size = info->ai_addrlen;
    // The hosts file may name an address twice: listening twice at it would fail.
    const auto same = [&](const SocketAddress& other) {
      return ToHostPort(other).host == ToHostPort(address).host;
    };
    if (std::none_of(addresses.begin(), addresses.end(), same)) addresses.push_back(address);
  }
  return addresses;
}

Result<SocketAddress> Resolve(const HostPort& name) {
  const Result<std::vector<SocketAddress>> addresses = ResolveAll(name);
  if (!addresses.ok()) return addresses.status();
  return addresses->front();
}

bool IsLoopback(const SocketAddress& address) {
  if (address.bytes.ss_family == AF_INET) {
    return IsLoopbackV4(As<sockaddr_in>(address).sin_addr.s_addr);
  }
  if (address.bytes.ss_family != AF_INET6) return false;
  const in6_addr v6 = As<sockaddr_in6>(address).sin6_addr;
  if (IN6_IS_ADDR_LOOPBACK(&v6)) return true;
  uint32_t v4 = 0;
  std::memcpy(&v4, v6.s6_addr + 12, sizeof(v4));
  return IN6_IS_ADDR_V4MAPPED(&v6) && IsLoopbackV4(v4);
}

Result<int> Listen(const HostPort& name, int backlog, bool (*set_options)(int fd)) {
  const Result<SocketAddress> address = Resolve(name);
  if (!address.ok()) return address.status();
  const int fd =
      socket(address->bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
  if (fd >= 0 && set_options(fd) && bind(fd, address->get(), address->size) == 0 &&
      listen(fd, backlog) == 0) {
    return fd;
  }
  // close and the message may change errno, which the caller is promised.
  const int error = errno;
  if (fd >= 0) close(fd);
  Status status = Status::IoError("cannot listen on " + name.ToString() + ": " +
                                  std::generic_category().message(error));
  errno = error;
  return status;
}

Result<UnixAddress> UnixAddress::Of(const std::string& path) {
  UnixAddress made;
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  std::string shown = path;
  if (path.size() >= sizeof(un.sun_path)) {
    const size_t slash = path.rfind('/');
    const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    made.directory_fd_ = open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    shown = "/proc/self/fd/" + std::to_string(made.directory_fd_) + "/" + path.substr(slash + 1);
    if (made.directory_fd_ < 0 || shown.size() >= sizeof(un.sun_path)) {
      const int error = made.directory_fd_ < 0 ? errno : ENAMETOOLONG;
      return Status::IoError(path + ": " + std::generic_category().message(error));
    }
  }
  std::memcpy(un.sun_path, shown.c_str(), shown.size() + 1);
  std::memcpy(&made.address_.bytes, &un, sizeof(un));
  made.address_.size = sizeof(un);
  return made;
}

UnixAddress::~UnixAddress() {
  if (directory_fd_ >= 0) close(directory_fd_);
}

Result<int> ListenUnix(const std::string& path, int backlog) {
  const auto failed = [&](const std::string& reason) {
    return Status::IoError("cannot listen on " + path + ": " + reason);
  };
  const Result<UnixAddress> at = UnixAddress::Of(path);
  if (!at.ok()) return failed(at.status().message());
  // The socket of a server that is gone: nobody can listen on it again.
  struct stat found {};
  if (lstat(path.c_str(), &found) == 0) {
    if (!S_ISSOCK(found.st_mode)) return failed("something that is no socket is there; remove it");
    unlink(path.c_str());
  }
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  // The file gets the mode of the socket, less the umask.
  const bool bound = fd >= 0 && fchmod(fd, S_IRUSR | S_IWUSR) == 0 &&
                     bind(fd, at->address().get(), at->address().size) == 0;
  if (bound && listen(fd, backlog) == 0) return fd;
  const int error = errno;
  if (bound) unlink(path.c_str());
  if (fd >= 0) close(fd);
  return failed(std::generic_category().message(error));
}

bool IsFromThisHost(int fd) {
  const std::string peer = RemoteEndOf(fd).host;
  // A connection from another host never has this host's address at the other end. So the machine's
  // own addresses need not be known.
  return !peer.empty() && LocalEndOf(fd).host == peer;
}

HostPort RemoteEndOf(int fd) {
  SocketAddress peer;
  if (getpeername(fd, peer.get(), &peer.size) != 0) return {};
  return ToHostPort(peer);
}

HostPort LocalEndOf(int fd) {
  SocketAddress end;
  if (getsockname(fd, end.get(), &end.size) != 0) return {};
  return ToHostPort(end);
}

std::optional<std::string> AddressInDigits(const std::string& text) {
  SocketAddress address;
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    std::memcpy(&address.bytes, &v4, sizeof(v4));
  } else if (inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    std::memcpy(&address.bytes, &v6, sizeof(v6));
  } else {
    return std::nullopt;
  }
  return ToHostPort(address).host;
}

HostPort ToHostPort(const SocketAddress& address) {
  if (address.bytes.ss_family == AF_UNIX) return {"unix", 0};
  char text[INET6_ADDRSTRLEN] = "";
  if (address.bytes.ss_family == AF_INET6) {
    const auto v6 = As<sockaddr_in6>(address);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
    return {text, ntohs(v6.sin6_port)};
  }
  const auto v4 = As<sockaddr_in>(address);
  inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
  return {text, ntohs(v4.sin_port)};
}

}  // namespace nowcalls::net
