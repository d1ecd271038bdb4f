#include "client/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <system_error>
#include <vector>

#include "base/clock.h"

namespace nowcalls::client {
namespace {

std::string ErrorText(int error) { return std::generic_category().message(error); }

// True when `fd` is ready for `events`, or has failed, before the deadline.
bool WaitFor(int fd, int16_t events, int64_t deadline_ms) {
  for (;;) {
    const int64_t left_ms = deadline_ms - BoottimeMs();
    pollfd watched{fd, events, 0};
    const int wait_ms = static_cast<int>(std::clamp<int64_t>(left_ms, 0, INT_MAX));
    const int ready = poll(&watched, 1, wait_ms);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // The next call on fd tells what is wrong.
    if (left_ms <= 0) return false;
  }
}

// 0, or the errno of the failure.
int ConnectBefore(int fd, const addrinfo& address, int64_t deadline_ms) {
  if (connect(fd, address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  if (!WaitFor(fd, POLLOUT, deadline_ms)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace

Result<Socket> Socket::Connect(const HostPort& peer, int64_t deadline_ms, const Lookup& lookup,
                               std::unique_ptr<ByteChannel> channel) {
  const Result<Addresses> addresses = Resolve(peer, deadline_ms, lookup);
  if (!addresses.ok()) return addresses.status();
  std::vector<const addrinfo*> found;
  for (const addrinfo* address = addresses->get(); address != nullptr; address = address->ai_next) {
    found.push_back(address);
  }
  int error = EADDRNOTAVAIL;
  for (size_t i = 0; i < found.size(); ++i) {
    const addrinfo* const address = found[i];
    Socket connection(socket(address->ai_family,
                             address->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                             address->ai_protocol));
    const int64_t now_ms = BoottimeMs();
    const int64_t left_ms = std::max<int64_t>(0, deadline_ms - now_ms);
    const int64_t share_ms = left_ms / static_cast<int64_t>(found.size() - i);
    error = connection.fd_ < 0 ? errno : ConnectBefore(connection.fd_, *address, now_ms + share_ms);
    if (error != 0) continue;
    const int on = 1;
    // Without it small requests may wait for earlier answers; a failure only costs speed.
    setsockopt(connection.fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    connection.channel_ = std::move(channel);
    return connection;
  }
  return Status::Unavailable(ErrorText(error));
}

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

Status Socket::Send(std::string_view bytes, int64_t deadline_ms) {
  return SendAll(channel_->Send(bytes), deadline_ms);
}

Status Socket::SendAll(std::string_view for_socket, int64_t deadline_ms) const {
  while (!for_socket.empty()) {
    const ssize_t sent = send(fd_, for_socket.data(), for_socket.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      for_socket.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!WaitFor(fd_, POLLOUT, deadline_ms)) return Status::Unavailable(ErrorText(ETIMEDOUT));
    } else if (errno != EINTR) {
      return Status::Unavailable(ErrorText(errno));
    }
  }
  return Status::Ok();
}

Status Socket::SendNow(std::string_view bytes) {
  std::string_view rest = bytes.empty() ? std::string_view() : channel_->Send(bytes);
  if (!unsent_.empty()) {
    unsent_.append(rest);
    rest = unsent_;
  }
  while (!rest.empty()) {
    const ssize_t sent = send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (sent < 0) return Status::Unavailable(ErrorText(errno));
    rest.remove_prefix(static_cast<size_t>(sent));
  }
  unsent_ = std::string(rest);
  return Status::Ok();
}

Status Socket::ReceiveNow(std::string* bytes) {
  constexpr size_t kBytesMax = 1024 * 1024;  // A peer that sends without pause has others wait.
  char chunk[64 * 1024];
  for (const size_t begin = bytes->size(); bytes->size() - begin < kBytesMax;) {
    const ssize_t size = recv(fd_, chunk, sizeof(chunk), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Status::Ok();
    if (size < 0) return Status::Unavailable(ErrorText(errno));
    if (size == 0) return Status::Unavailable("the connection was closed");
    const auto received = channel_->Receive({chunk, static_cast<size_t>(size)});
    bytes->append(received.bytes);
    if (!received.reply.empty()) unsent_.append(received.reply);
    if (received.failed) return Status::Unavailable(channel_->error());
    if (static_cast<size_t>(size) < sizeof(chunk)) break;
  }
  return Status::Ok();
}

void Socket::Shutdown() const { shutdown(fd_, SHUT_RDWR); }

Status Socket::Receive(std::string* bytes, int64_t deadline_ms) {
  char chunk[16 * 1024];
  for (;;) {
    const ssize_t size = recv(fd_, chunk, sizeof(chunk), 0);
    if (size > 0) {
      const auto received = channel_->Receive({chunk, static_cast<size_t>(size)});
      NOWCALLS_RETURN_IF_ERROR(SendAll(received.reply, deadline_ms));
      bytes->append(received.bytes);
      if (received.failed) return Status::Unavailable(channel_->error());
      if (!received.bytes.empty()) return Status::Ok();
      continue;  // The bytes were the channel's own.
    }
    if (size == 0) return Status::Unavailable("the connection was closed");
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!WaitFor(fd_, POLLIN, deadline_ms)) return Status::OutcomeUnknown(ErrorText(ETIMEDOUT));
    } else if (errno != EINTR) {
      return Status::Unavailable(ErrorText(errno));
    }
  }
}

}  // namespace nowcalls::client
