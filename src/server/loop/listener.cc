#include "server/loop/listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "base/check.h"
#include "net/address.h"

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

}  // namespace

Result<std::unique_ptr<Listener>> Listener::Bind(const net::Endpoint& name) {
  const Result<int> fd = name.is_unix() ? net::ListenUnix(name.path, kBacklog)
                                        : net::Listen(name.tcp, kBacklog, SetOptions);
  if (!fd.ok()) return fd.status();
  net::Endpoint address = name.is_unix() ? name : net::Endpoint::Tcp(net::LocalEndOf(*fd));
  return std::unique_ptr<Listener>(new Listener(*fd, std::move(address)));
}

Listener::~Listener() {
  if (fd_ >= 0) close(fd_);
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
  if (address_.is_unix()) unlink(address_.path.c_str());
}

void Listener::AcceptSome() {
  for (int i = 0; i < kAcceptsPerCallMax && AcceptOne(); ++i) {
  }
}

// False: no peer waits, or none can be accepted.
bool Listener::AcceptOne() {
  using Outcome = net::Acceptor::Outcome;
  switch (acceptor_.Accept(fd_)) {
    case Outcome::kAccepted:
      on_accept_(acceptor_.fd(), net::PeerOf(acceptor_.fd(), acceptor_.address(), ++accepted_));
      return true;
    case Outcome::kLost: return true;
    case Outcome::kTurnedAway:
      on_refuse_("refused a connection: " + acceptor_.error());
      return true;
    case Outcome::kExhausted:
      on_refuse_("refused a connection: " + acceptor_.error());
      Rest();
      return false;
    case Outcome::kFailed: on_refuse_("cannot accept a connection: " + acceptor_.error()); break;
    case Outcome::kNobody: break;
  }
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
  acceptor_.Recover();  // After a rest descriptors may be free again.
  NOWCALLS_CHECK(uv_poll_start(&poll_, UV_READABLE, [](uv_poll_t* poll, int, int) {
                   static_cast<Listener*>(poll->data)->AcceptSome();
                 }) == 0);
}

}  // namespace nowcalls::server
