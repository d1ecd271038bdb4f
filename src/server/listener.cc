#include "server/listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/listen_address.h"

namespace nowcalls::server {
namespace {

constexpr int kBacklog = 4096;          // The system caps it (net.core.somaxconn).
constexpr int kAcceptsPerCallMax = 64;  // Then connections get their turn.
constexpr uint64_t kRestMs = 100;       // While the system gives no descriptor at all.

// A host that vanished is noticed within a minute: by keepalive probes (tcp(7)), or, while bytes to
// it are unacknowledged and no probes are sent, by the user timeout. Without that the kernel would
// retransmit for a quarter of an hour.
constexpr int kKeepaliveIdleS = 30;
constexpr int kKeepaliveIntervalS = 10;
constexpr int kKeepaliveProbes = 3;
constexpr int kUnacknowledgedMsMax = 60'000;

std::string ErrorText(int error) { return std::generic_category().message(error); }

bool SetOption(int fd, int level, int option, int value) {
  return setsockopt(fd, level, option, &value, sizeof(value)) == 0;
}

// On Linux accepted sockets inherit these: six system calls less for each.
bool SetOptions(int fd) {
  return SetOption(fd, SOL_SOCKET, SO_REUSEADDR, 1) && SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1) &&
         SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1) &&
         SetOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepaliveIdleS) &&
         SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepaliveIntervalS) &&
         SetOption(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepaliveProbes) &&
         SetOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledgedMsMax);
}

int OpenSpare() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

}  // namespace

Result<std::unique_ptr<Listener>> Listener::Bind(const HostPort& name) {
  const Result<int> fd = Listen(name, kBacklog, SetOptions);
  if (!fd.ok()) return fd.status();
  std::unique_ptr<Listener> listener(new Listener(*fd));
  listener->address_ = LocalEndOf(*fd);
  return listener;
}

Listener::Listener(int fd) : fd_(fd), spare_fd_(OpenSpare()) {}

Listener::~Listener() {
  if (fd_ >= 0) close(fd_);
  if (spare_fd_ >= 0) close(spare_fd_);
}

void Listener::Start(uv_loop_t* loop, OnAccept on_accept, OnRefuse on_refuse) {
  on_accept_ = std::move(on_accept);
  on_refuse_ = std::move(on_refuse);
  poll_.data = this;
  rest_.data = this;
  // Polls and accepts itself: uv_listen hides that descriptors have run out.
  NOWCALLS_CHECK(uv_poll_init(loop, &poll_, fd_) == 0);
  NOWCALLS_CHECK(uv_timer_init(loop, &rest_) == 0);
  Poll();
}

void Listener::Close() {
  uv_poll_stop(&poll_);
  uv_close(reinterpret_cast<uv_handle_t*>(&poll_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&rest_), nullptr);
  close(std::exchange(fd_, -1));
}

void Listener::AcceptSome() {
  for (int i = 0; i < kAcceptsPerCallMax && AcceptOne(); ++i) {
  }
}

// False: no peer waits, or none can be accepted.
bool Listener::AcceptOne() {
  SocketAddress peer;
  const int fd = accept4(fd_, peer.get(), &peer.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd >= 0) {
    on_accept_(fd, ToHostPort(peer).ToString());
    return true;
  }
  if (errno == EAGAIN) return false;
  // Out of descriptors: the spare one serves to turn the peer away.
  if (errno == EMFILE || errno == ENFILE) {
    RefuseOne();
    if (spare_fd_ < 0) Rest();
    return spare_fd_ >= 0;
  }
  // Errors of the next peer alone (accept(2)); the one behind it may be well.
  if (errno == ECONNABORTED || errno == EINTR || errno == EPROTO || errno == EPERM) return true;
  on_refuse_("cannot accept a connection: " + ErrorText(errno));
  return false;
}

// No descriptor at all, not even to refuse a peer. Peers that wait would wake the loop again at
// once.
void Listener::Rest() {
  uv_poll_stop(&poll_);
  NOWCALLS_CHECK(uv_timer_start(
                     &rest_, [](uv_timer_t* timer) { static_cast<Listener*>(timer->data)->Poll(); },
                     kRestMs, 0) == 0);
}

void Listener::Poll() {
  // After a rest descriptors may be free again.
  if (spare_fd_ < 0) spare_fd_ = OpenSpare();
  NOWCALLS_CHECK(uv_poll_start(&poll_, UV_READABLE, [](uv_poll_t* poll, int, int) {
                   static_cast<Listener*>(poll->data)->AcceptSome();
                 }) == 0);
}

void Listener::RefuseOne() {
  const std::string reason = ErrorText(errno);
  if (spare_fd_ >= 0) {
    // Accepted and closed, the peer learns at once that it is not served. Another thread may take
    // the descriptor in between; then the peer waits.
    close(spare_fd_);
    const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) close(fd);
  }
  spare_fd_ = OpenSpare();
  on_refuse_("refused a connection: " + reason);
}

}  // namespace nowcalls::server
