#include "bench/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>

#include "base/check.h"

namespace nowcalls::bench {
namespace {

bool IsAgain(ssize_t result) { return result == -EAGAIN || result == -EINTR; }

// `error` is -errno, which is also libuv's code.
Status SystemError(const std::string& what, ssize_t error) {
  return Status::Unavailable(what + ": " + uv_strerror(static_cast<int>(error)));
}

// A socket that connects, or -errno.
int BeginToConnect(const sockaddr* address) {
  const socklen_t size =
      address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  const int fd =
      socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
  if (fd < 0) return -errno;
  // Nagle's delay would be measured as latency of the server.
  const int on = 1;
  if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0 &&
      (connect(fd, address, size) == 0 || errno == EINPROGRESS)) {
    return fd;
  }
  const int error = -errno;
  close(fd);
  return error;
}

}  // namespace

void Connection::Open(uv_loop_t* loop, const sockaddr* address) {
  fd_ = BeginToConnect(address);
  if (fd_ < 0) return owner_->OnLost(this, SystemError("could not be opened", fd_));
  poll_.data = this;
  // Not open_ yet, so Close would leave the descriptor open.
  const int error = uv_poll_init(loop, &poll_, fd_);
  if (error != 0) {
    close(fd_);
    return owner_->OnLost(this, SystemError("could not be opened", error));
  }
  open_ = true;
  Poll(UV_WRITABLE);
}

void Connection::Close() {
  if (!open_) return;
  open_ = false;
  // libuv first: it must not watch a descriptor that is closed.
  uv_close(reinterpret_cast<uv_handle_t*>(&poll_), nullptr);
  close(fd_);
}

void Connection::Lose(const Status& reason) {
  if (!open_) return;
  Close();
  owner_->OnLost(this, reason);
}

// A server that is at its limit accepts and closes, and what it has not read makes that a reset:
// the bytes of the greeting race with it.
void Connection::LoseBy(ssize_t error) {
  const bool by_server = error == 0 || error == -ECONNRESET || error == -EPIPE;
  if (by_server && !greeted_) {
    return Lose(Status::Unavailable(
        "was closed by the server at once; it may be at its limit of connections"));
  }
  Lose(error == 0 ? Status::Unavailable("was closed by the server; its log may say why")
                  : SystemError("was lost", error));
}

void Connection::Poll(int events) {
  NOWCALLS_CHECK(uv_poll_start(&poll_, events, [](uv_poll_t* poll, int status, int seen) {
                   static_cast<Connection*>(poll->data)->OnEvents(status != 0, seen);
                 }) == 0);
}

// After an error libuv looks no more, so it is asked again. Connecting, receiving or sending tells
// which error it was.
void Connection::OnEvents(bool error, int events) {
  if (!connected_) return OnConnected();
  if (error) Poll(unsent_.empty() ? UV_READABLE : UV_READABLE | UV_WRITABLE);
  if (!unsent_.empty() && (error || (events & UV_WRITABLE) != 0)) SendUnsent();
  // Named to the turn once, until it takes the socket.
  if (!open_ || readable_ || (!error && (events & UV_READABLE) == 0)) return;
  readable_ = true;
  turn_->Readable(this);
}

void Connection::OnConnected() {
  int error = 0;
  socklen_t size = sizeof(error);
  NOWCALLS_CHECK(getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size) == 0);
  if (error == ECONNRESET) return LoseBy(-error);
  if (error != 0) return Lose(SystemError("could not be opened", -error));
  connected_ = true;
  Poll(UV_READABLE);
  // The channel's first words and the greeting leave at once: they are not part of the load.
  dialect_->Greet(&out_);
  std::string first(channel_->Receive({}).reply);
  first += channel_->Send(out_.view());
  SendNow(first);
}

void Connection::Flush() {
  // With unsent bytes the new ones stay in out_, in order, until the socket has taken the rest
  // (SendUnsent).
  if (open_ && unsent_.empty() && !out_.empty()) turn_->Send(this, channel_->Send(out_.view()));
}

void Connection::SendNow(std::string_view for_socket) {
  const ssize_t sent = send(fd_, for_socket.data(), for_socket.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  Sent(sent < 0 ? -errno : sent, for_socket);
}

// All of out_ is sent or unsent now.
void Connection::Sent(ssize_t result, std::string_view bytes) {
  if (!open_) return;
  if (result < 0 && !IsAgain(result)) return LoseBy(result);
  // What the socket did not take is kept as it is for the socket: it went through the channel
  // already.
  if (result > 0) bytes.remove_prefix(static_cast<size_t>(result));
  Keep(bytes);
  out_.Clear();
}

void Connection::Keep(std::string_view for_socket) {
  if (for_socket.empty()) return;
  // Only while bytes wait, since a socket is nearly always writable.
  if (unsent_.empty()) Poll(UV_READABLE | UV_WRITABLE);
  unsent_ += for_socket;
}

void Connection::SendUnsent() {
  const ssize_t sent = send(fd_, unsent_.data(), unsent_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) {
    if (!IsAgain(-errno)) LoseBy(-errno);
    return;
  }
  unsent_.erase(0, static_cast<size_t>(sent));
  if (!unsent_.empty()) return;
  Poll(UV_READABLE);
  if (!out_.empty()) SendNow(channel_->Send(out_.view()));
}

bool Connection::TakeReadable() {
  readable_ = false;
  return open_;
}

void Connection::Received(ssize_t result, std::string_view bytes) {
  // One look at the clock for all answers of the receive, before the first is taken. Time that an
  // answer lay in the socket counts as latency.
  const Moment now = Now();
  if (!open_ || IsAgain(result)) return;
  if (result <= 0) return LoseBy(result);
  const net::Channel::Received received = channel_->Receive(bytes);
  Keep(received.reply);
  if (!received.bytes.empty()) TakeBytes(received.bytes, now);
  if (received.failed) Lose(Status::Unavailable("failed: " + channel_->error()));
}

void Connection::TakeBytes(std::string_view bytes, const Moment& now) {
  // Nearly always whole answers, which are taken from the receive buffer without a copy.
  if (rest_.empty()) {
    rest_.assign(bytes.substr(TakeAnswers(bytes, now)));
  } else {
    rest_.append(bytes);
    rest_.erase(0, TakeAnswers(rest_, now));
  }
  // Lanes that the answers freed start together, behind all of them.
  if (open_) owner_->OnAnswersTaken(this, now);
}

size_t Connection::TakeAnswers(std::string_view bytes, const Moment& now) {
  std::string_view input = bytes;
  Answer answer;
  while (open_ && !input.empty()) {
    const Dialect::Outcome outcome = dialect_->Take(&input, &answer);
    if (outcome == Dialect::Outcome::kIncomplete) break;
    if (outcome == Dialect::Outcome::kInvalid) {
      Lose(Status::Unavailable("brought an answer that is not understood: " + dialect_->error()));
    } else if (!greeted_) {
      TakeGreeting(answer);
    } else if (!owner_->OnAnswer(this, answer, now)) {
      Lose(Status::Unavailable("brought an answer to a request that was not sent"));
    }
  }
  return bytes.size() - input.size();
}

void Connection::TakeGreeting(const Answer& answer) {
  if (answer.kind != AnswerKind::kGreeted) {
    return Lose(Status::Unavailable("was refused: " + std::string(answer.error_name) + ": " +
                                    std::string(answer.error_text)));
  }
  greeted_ = true;
  owner_->OnGreeted(this);
}

}  // namespace nowcalls::bench
