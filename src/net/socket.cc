#include "net/socket.h"

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

namespace nowcalls::net {
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

// 0: connected; EINPROGRESS: poll for it; else the errno of the failure.
int BeginToConnect(int fd, const SocketAddress& address) {
  if (fd < 0 || connect(fd, address.get(), address.size) == 0) return fd < 0 ? errno : 0;
  return errno == EINTR ? EINPROGRESS : errno;
}

// The end of a connect that poll reported: 0, or an errno.
int HowItEnded(int fd) {
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

Status WhyFailed(const Channel& channel) {
  return {channel.denied() ? StatusCode::kPermissionDenied : StatusCode::kUnavailable,
          channel.error()};
}

}  // namespace

Result<Socket> Socket::Connect(const Endpoint& server, int64_t deadline_ms, const Lookup& lookup,
                               std::unique_ptr<Channel> channel) {
  Result<Socket> connected = Status::Unavailable("");
  if (server.is_unix()) {
    const Result<UnixAddress> at = UnixAddress::Of(server.path);
    if (!at.ok()) return Status::Unavailable(at.status().message());
    connected = ConnectToFirst({&at->address(), 1}, deadline_ms);
  } else {
    const auto addresses = ResolveBefore(deadline_ms, server.tcp, lookup);
    if (!addresses.ok()) return addresses.status();
    connected = ConnectToFirst(*addresses, deadline_ms);
  }
  if (!connected.ok()) return connected;
  const int on = 1;
  // Without it small requests may wait for earlier answers; a failure only costs speed.
  setsockopt(connected->fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  connected->channel_ = std::move(channel);
  if (connected->channel_->shakes_hands()) {
    const Status shaken = connected->ShakeHands(deadline_ms);
    if (!shaken.ok()) return shaken;
  }
  return connected;
}

// The client's end speaks first.
Status Socket::ShakeHands(int64_t deadline_ms) {
  const auto failed = [&](const std::string& why) {
    return Status{
        channel_->denied() ? StatusCode::kPermissionDenied : StatusCode::kFailedPrecondition,
        "the TLS handshake failed: " + why};
  };
  char chunk[16 * 1024];
  std::string_view arrived;
  for (;;) {
    const auto received = channel_->Receive(arrived);
    const Status sent = SendAll(received.reply, deadline_ms);
    if (received.failed) return failed(channel_->error());
    if (!sent.ok()) return failed(sent.message());
    if (!received.bytes.empty()) return failed("it sends bytes before it was asked");
    if (!channel_->shakes_hands()) return Status::Ok();
    ssize_t size = 0;
    while ((size = recv(fd_, chunk, sizeof(chunk), 0)) < 0) {
      const bool none = errno == EAGAIN || errno == EWOULDBLOCK;
      if (!none && errno != EINTR) return failed(ErrorText(errno));
      if (none && !WaitFor(fd_, POLLIN, deadline_ms)) return failed(ErrorText(ETIMEDOUT));
    }
    if (size == 0) return failed("the connection was closed; does the server speak TLS?");
    arrived = {chunk, static_cast<size_t>(size)};
  }
}

// Happy eyeballs (RFC 8305): starts the addresses one after the other, at most 250 ms apart, and
// takes the first that answers. An address that swallows packets does not hide those behind it.
Result<Socket> Socket::ConnectToFirst(std::span<const SocketAddress> addresses,
                                      int64_t deadline_ms) {
  constexpr int64_t kHeadStartMsMax = 250;  // As RFC 8305 has it.
  constexpr int kFullQueuePauseMs = 10;
  const auto count = std::max<int64_t>(static_cast<int64_t>(addresses.size()), 1);
  int64_t now_ms = BoottimeMs();
  const int64_t head_start_ms =
      std::clamp<int64_t>((deadline_ms - now_ms) / count, 0, kHeadStartMsMax);
  // Connects under way; the same index in both.
  std::vector<Socket> begun;
  std::vector<pollfd> polled;
  int error = EADDRNOTAVAIL;
  for (int64_t next_ms = now_ms;; now_ms = BoottimeMs()) {
    // Start the next address when its turn has come, or when no connect is under way.
    if (!addresses.empty() && (now_ms >= next_ms || begun.empty())) {
      const SocketAddress& next = addresses.front();
      Socket connection(
          socket(next.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      const int failure = BeginToConnect(connection.fd_, next);
      if (failure == 0) return connection;
      // The queue of a Unix socket is full, and connect does not wait for it (unix(7)).
      if (failure == EAGAIN && next.bytes.ss_family == AF_UNIX && now_ms < deadline_ms) {
        poll(nullptr, 0, kFullQueuePauseMs);
        continue;
      }
      if (failure == EINPROGRESS) {
        polled.push_back({connection.fd_, POLLOUT, 0});
        begun.push_back(std::move(connection));
        next_ms = now_ms + head_start_ms;
      } else {
        error = failure;
      }
      addresses = addresses.subspan(1);
      continue;
    }
    // All have refused, or the time is over.
    if (begun.empty()) return Status::Unavailable(ErrorText(error));
    if (now_ms >= deadline_ms) return Status::Unavailable(ErrorText(ETIMEDOUT));
    // Wait for an answer, the next start, or the deadline.
    const int64_t until_ms = addresses.empty() ? deadline_ms : std::min(next_ms, deadline_ms);
    poll(polled.data(), polled.size(),
         static_cast<int>(std::min<int64_t>(until_ms - now_ms, INT_MAX)));
    for (size_t i = polled.size(); i-- > 0;) {
      if (polled[i].revents == 0) continue;
      error = HowItEnded(polled[i].fd);
      if (error == 0) return std::move(begun[i]);
      // A refusal lets the next address start at once.
      begun.erase(begun.begin() + static_cast<ptrdiff_t>(i));
      polled.erase(polled.begin() + static_cast<ptrdiff_t>(i));
      next_ms = now_ms;
    }
  }
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
  // Buffered bytes first, in the order of the channel.
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
    // A channel's own reply, such as a handshake's, leaves with the next SendNow.
    const auto received = channel_->Receive({chunk, static_cast<size_t>(size)});
    bytes->append(received.bytes);
    if (!received.reply.empty()) unsent_.append(received.reply);
    if (received.failed) return WhyFailed(*channel_);
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
      if (received.failed) return WhyFailed(*channel_);
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

}  // namespace nowcalls::net
