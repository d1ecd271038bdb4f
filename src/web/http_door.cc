#include "web/http_door.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/background_thread.h"
#include "base/clock.h"

namespace nowcalls::web {
namespace {

constexpr size_t kHeadBytes = 64;  // More than a method and the longest path that is looked for.
constexpr int kAcceptsPerTurn = 64;

bool Begins(const std::vector<std::string>& paths, std::string_view begin) {
  return std::any_of(paths.begin(), paths.end(),
                     [&](const std::string& path) { return path.starts_with(begin); });
}

}  // namespace

// Happy path: accept, peek at the request line, hand over. A connection is of the kind of its first
// request; those with room of their own are therefore closed behind the answer. With TLS the daemon
// learns the kind.
GuestKind HttpDoor::KindOf(std::string_view head, const Paths& paths) {
  constexpr size_t kMethodBytesMax = 7;
  // Text without a blank that is longer than any method is no HTTP: the other daemon says so.
  const size_t method = head.find(' ');
  if (method == std::string_view::npos) {
    return head.size() <= kMethodBytesMax ? GuestKind::kUndecided : GuestKind::kOther;
  }
  const std::string_view target = head.substr(method + 1);
  // The path ends at a blank, a query or the line. Until its end is there it may still become a
  // path with room of its own.
  const std::string_view path = target.substr(0, target.find_first_of(" ?\r\n"));
  if (path.size() == target.size()) {  // Its end has not come.
    const bool may_be = Begins(paths.probes, path) || Begins(paths.shorts, path);
    return may_be ? GuestKind::kUndecided : GuestKind::kOther;
  }
  if (IsOneOf(path, paths.probes)) return GuestKind::kProbe;
  return IsOneOf(path, paths.shorts) ? GuestKind::kShort : GuestKind::kOther;
}

HttpDoor::HttpDoor(std::vector<int> listening, Paths paths, int64_t request_ms_max, Guests* guests,
                   HttpDaemon* probes, HttpDaemon* others, HttpDaemon* tls)
    : listening_(std::move(listening)),
      paths_(std::move(paths)),
      request_ms_max_(request_ms_max),
      guests_(guests),
      probes_(probes),
      others_(others),
      tls_(tls) {}

Status HttpDoor::Start() {
  epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  end_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (epoll_fd_ < 0 || end_fd_ < 0) {
    return Status::IoError("cannot serve HTTP: " + std::generic_category().message(errno));
  }
  // One epoll set: the end, the daemon of probes, and the listening sockets.
  Watch(end_fd_, EPOLLIN);
  Watch(probes_->wait_fd(), EPOLLIN);
  for (const int fd : listening_) Watch(fd, EPOLLIN);
  thread_ = std::thread([this] {
    UseCpusOfProcess();
    Run();
  });
  return {};
}

HttpDoor::~HttpDoor() {
  if (thread_.joinable()) {
    eventfd_write(end_fd_, 1);
    thread_.join();
  }
  // Connections that were handed over are the daemons' to close.
  while (!undecided_.empty()) Close(undecided_.begin()->first);
  if (end_fd_ >= 0) close(end_fd_);
  if (epoll_fd_ >= 0) close(epoll_fd_);
}

void HttpDoor::Watch(int fd, uint32_t events) const {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event);
}

int HttpDoor::WaitMs() const {
  constexpr int64_t kLooksAtSlowMs = 500;
  return static_cast<int>(std::min(probes_->WaitMsMax(), kLooksAtSlowMs));
}

void HttpDoor::Run() {
  std::array<epoll_event, 64> events{};
  for (;;) {
    // Each turn: probes, then events, then guests that took too long. The daemon of probes has
    // descriptors and deadlines of its own, so it runs whatever woke the thread.
    probes_->Run();
    const int count =
        epoll_wait(epoll_fd_, events.data(), static_cast<int>(events.size()), WaitMs());
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<size_t>(i)].data.fd;
      if (fd == end_fd_) return;
      // The next turn runs it.
      if (fd == probes_->wait_fd()) continue;
      if (undecided_.contains(fd)) {
        Look(fd, events[static_cast<size_t>(i)].events);
      } else if (std::find(listening_.begin(), listening_.end(), fd) != listening_.end()) {
        AcceptAll(fd);
      }
    }
    const int64_t now_ms = BoottimeMs();
    guests_->CloseSlow(now_ms);
    others_->SendDelayed(now_ms);
    if (tls_ != nullptr) tls_->SendDelayed(now_ms);
    GoOn();
  }
}

void HttpDoor::AcceptAll(int listening) {
  using Outcome = net::Acceptor::Outcome;
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    const Outcome outcome = acceptor_.Accept(listening);
    if (outcome == Outcome::kLost || outcome == Outcome::kTurnedAway) continue;
    if (outcome == Outcome::kExhausted) Rest();
    if (outcome != Outcome::kAccepted) return;
    const int fd = acceptor_.fd();
    const int64_t close_at_ms = BoottimeMs() + request_ms_max_;
    const std::string host = net::ToHostPort(acceptor_.address()).host;
    if (!guests_->Admit(fd, GuestKind::kUndecided, host, close_at_ms)) {
      close(fd);
      continue;
    }
    guests_->Settle(fd);
    undecided_[fd] = acceptor_.address();
    // By edges: bytes that were only looked at stay in the socket, and would be reported for ever.
    Watch(fd, EPOLLIN | EPOLLRDHUP | EPOLLET);
    // Mostly the request is there already.
    Look(fd, 0);
  }
}

// A connection that stays in the queue would wake the thread again at once.
void HttpDoor::Rest() {
  for (const int each : listening_) epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, each, nullptr);
  rests_ = true;
}

// Once there are files again.
void HttpDoor::GoOn() {
  if (!rests_ || !acceptor_.Recover()) return;
  for (const int each : listening_) Watch(each, EPOLLIN);
  rests_ = false;
}

void HttpDoor::Look(int fd, uint32_t events) {
  std::array<char, kHeadBytes> head{};
  // MSG_PEEK: the daemon must find the request whole.
  const ssize_t size = recv(fd, head.data(), head.size(), MSG_PEEK | MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) return Close(fd);
  constexpr char kTlsHandshake = 0x16;  // The type of the first record (RFC 8446, 5.1).
  if (tls_ != nullptr && head[0] == kTlsHandshake) {
    return HandOver(fd, GuestKind::kUndecided, tls_);
  }
  const GuestKind kind = KindOf({head.data(), static_cast<size_t>(size)}, paths_);
  if (kind != GuestKind::kUndecided) {
    return HandOver(fd, kind, kind == GuestKind::kProbe ? probes_ : others_);
  }
  // More cannot come. Until the close, recv would return the same bytes for ever.
  constexpr uint32_t kHungUp = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
  if ((events & kHungUp) != 0) Close(fd);
}

void HttpDoor::HandOver(int fd, GuestKind kind, HttpDaemon* to) {
  const net::SocketAddress peer = undecided_.at(fd);
  const int64_t close_at_ms = BoottimeMs() + request_ms_max_;
  if (!guests_->Admit(fd, kind, net::ToHostPort(peer).host, close_at_ms)) return Close(fd);
  // Out of this epoll set before the daemon has it: from Add on the daemon may close it.
  undecided_.erase(fd);
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
  to->Add(fd, peer);
}

void HttpDoor::Close(int fd) {
  // Before the close, after which another connection may have the number.
  guests_->Leave(fd);
  undecided_.erase(fd);
  close(fd);
}

}  // namespace nowcalls::web
