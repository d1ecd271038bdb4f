#include "server/connection.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/check.h"

namespace nowcalls::server {
namespace {

bool IsAgain(ssize_t result) { return result == -EAGAIN || result == -EINTR; }

}  // namespace

std::unique_ptr<Connection> Connection::Open(uv_loop_t* loop, int fd, engine::ConnectionId id,
                                             Owner* owner) {
  std::unique_ptr<Connection> connection(new Connection(fd, id, owner));
  connection->poll_.data = connection.get();
  if (uv_poll_init(loop, &connection->poll_, fd) != 0) {
    close(fd);
    return nullptr;
  }
  connection->Poll();
  return connection;
}

bool Connection::TakeReadable() {
  const bool told = std::exchange(readable_, false);
  return reads() && (told || state_ == State::kOpen);  // What is dropped can wait.
}

// Others' bytes were taken since the receive, and what they brought about may have ended the
// reading. An end of the stream comes again.
void Connection::Received(ssize_t result, std::string_view bytes) {
  if (IsAgain(result)) return;
  if (result > 0) {
    if (state_ == State::kOpen) owner_->OnBytes(id_, bytes);
  } else if (result < 0 || state_ == State::kLingering) {
    CloseNow();
  } else if (reads()) {
    linger_ = reading_ = false;
    owner_->OnEndOfInput(id_);
  }
}

void Connection::Sent(ssize_t result, std::string_view bytes) {
  if (result < 0 && !IsAgain(result)) return CloseNow();
  if (result > 0) bytes.remove_prefix(static_cast<size_t>(result));
  Keep(bytes);
}

void Connection::Keep(std::string_view bytes) {
  if (state_ != State::kOpen || bytes.empty()) return;
  if (kept_sent_ > kept_left()) DropSent();
  kept_.Append(bytes);
  Poll();
}

void Connection::SetReading(bool on) {
  if (state_ != State::kOpen) return;
  reading_ = on;
  if (on) Poll();
}

void Connection::CloseAfterFlush() {
  if (state_ != State::kOpen) return;
  state_ = State::kFlushing;
  if (kept_left() == 0) OnFlushed();
}

void Connection::CloseWhenFlushed() {
  linger_ = false;
  CloseAfterFlush();
}

void Connection::CloseNow() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  uv_close(reinterpret_cast<uv_handle_t*>(&poll_), [](uv_handle_t* closed) {
    auto* self = static_cast<Connection*>(closed->data);
    self->owner_->OnClosed(self->id_);
  });
  close(fd_);
}

int Connection::wanted() const {
  return (reads() ? UV_READABLE : 0) | (kept_left() > 0 ? UV_WRITABLE : 0);
}

// Looks for what is wanted, at least: who stops reading often goes on in the same turn, and each
// change is a system call or two. Events that come unwanted end the looking for them.
void Connection::Poll() {
  if ((wanted() & ~polled_) == 0) return;
  polled_ = wanted();
  NOWCALLS_CHECK(uv_poll_start(&poll_, polled_, [](uv_poll_t* poll, int status, int events) {
                   static_cast<Connection*>(poll->data)->OnEvents(status != 0, events);
                 }) == 0);
}

// After an error libuv looks no more; reading or sending tells which it is.
void Connection::OnEvents(bool error, int events) {
  const int seen = error ? UV_READABLE | UV_WRITABLE : events;
  if (error || (seen & polled_ & ~wanted()) != 0) {
    uv_poll_stop(&poll_);
    polled_ = 0;
    Poll();
  }
  // What has come before the error is received first, if it is to be had still.
  if ((seen & UV_WRITABLE) != 0 && kept_left() > 0 && !(error && reads())) SendKept();
  if ((seen & UV_READABLE) != 0 && reads() && !readable_) {
    readable_ = true;
    owner_->OnReadable(this);
  }
}

void Connection::SendKept() {
  const std::string_view bytes = kept_.view().substr(kept_sent_);
  const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) {
    if (!IsAgain(-errno)) CloseNow();
    return;
  }
  kept_sent_ += static_cast<size_t>(sent);
  if (kept_left() < kept_.capacity() / 4) DropSent();
  if (kept_left() == 0 && state_ == State::kFlushing) return OnFlushed();
  if (state_ == State::kOpen) {
    owner_->OnSent(id_, kept_left());
  } else {
    owner_->OnFlushing(id_);
  }
}

// Its memory is counted by what is left.
void Connection::DropSent() {
  wire::OutputBuffer left;
  left.Append(kept_.view().substr(kept_sent_));
  kept_.swap(left);
  kept_sent_ = 0;
}

void Connection::OnFlushed() {
  int unread = 0;
  if (!linger_ && ioctl(fd_, FIONREAD, &unread) == 0 && unread == 0) return CloseNow();
  if (shutdown(fd_, SHUT_WR) != 0) return CloseNow();
  state_ = State::kLingering;
  Poll();
  owner_->OnLingering(id_);
}

}  // namespace nowcalls::server
