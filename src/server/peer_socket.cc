#include "server/peer_socket.h"

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

std::unique_ptr<PeerSocket> PeerSocket::Open(uv_loop_t* loop, int fd,
                                             std::unique_ptr<ByteChannel> channel,
                                             engine::ConnectionId id, Owner* owner) {
  std::unique_ptr<PeerSocket> socket(new PeerSocket(fd, std::move(channel), id, owner));
  socket->poll_.data = socket.get();
  if (uv_poll_init(loop, &socket->poll_, fd) != 0) {
    close(fd);
    return nullptr;
  }
  socket->Poll();
  return socket;
}

bool PeerSocket::TakeReadable() {
  const bool told = std::exchange(readable_, false);
  return reads() && (told || state_ == State::kOpen);  // Bytes that are dropped can wait.
}

// Bytes of other sockets were handled between the receive and this call, and may have ended the
// reading here. An end of the stream comes again.
void PeerSocket::Received(ssize_t result, std::string_view bytes) {
  if (IsAgain(result)) return;
  if (result > 0) {
    if (state_ == State::kOpen) Take(bytes);
  } else if (result < 0 || state_ == State::kLingering) {
    CloseNow();
  } else if (reads()) {
    linger_ = reading_ = false;
    owner_->OnEndOfInput(id_);
  }
}

void PeerSocket::Take(std::string_view from_socket) {
  const ByteChannel::Received received = channel_->Receive(from_socket);
  Keep(received.reply);
  if (!received.bytes.empty()) owner_->OnBytes(id_, received.bytes);
  if (!received.failed || state_ == State::kClosed) return;
  owner_->OnFailed(id_, channel_->error());
  CloseAfterFlush();
}

void PeerSocket::Send(std::string_view bytes, SocketTurn* turn) {
  if (state_ != State::kOpen) return;
  const std::string_view for_socket = channel_->Send(bytes);
  if (for_socket.empty()) return;
  if (kept_left() > 0) return Keep(for_socket);
  turn->Send(this, for_socket);
}

void PeerSocket::Sent(ssize_t result, std::string_view bytes) {
  if (result < 0 && !IsAgain(result)) return CloseNow();
  if (result > 0) bytes.remove_prefix(static_cast<size_t>(result));
  Keep(bytes);
}

void PeerSocket::Keep(std::string_view for_socket) {
  if (state_ != State::kOpen || for_socket.empty()) return;
  if (kept_sent_ > kept_left()) DropSent();
  kept_.Append(for_socket);
  Poll();
}

void PeerSocket::SetReading(bool on) {
  if (state_ != State::kOpen) return;
  reading_ = on;
  if (on) Poll();
}

void PeerSocket::CloseAfterFlush() {
  if (state_ != State::kOpen) return;
  Keep(channel_->Close());
  state_ = State::kFlushing;
  if (kept_left() == 0) OnFlushed();
}

void PeerSocket::CloseWhenFlushed() {
  linger_ = false;
  CloseAfterFlush();
}

void PeerSocket::CloseNow() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  uv_close(reinterpret_cast<uv_handle_t*>(&poll_), [](uv_handle_t* closed) {
    auto* self = static_cast<PeerSocket*>(closed->data);
    self->owner_->OnClosed(self->id_);
  });
  close(fd_);
}

int PeerSocket::wanted() const {
  return (reads() ? UV_READABLE : 0) | (kept_left() > 0 ? UV_WRITABLE : 0);
}

// Looks for what is wanted, at least: reading that stops often goes on in the same turn, and each
// change is a system call or two. An unwanted event ends the looking for it.
void PeerSocket::Poll() {
  if ((wanted() & ~polled_) == 0) return;
  polled_ = wanted();
  NOWCALLS_CHECK(uv_poll_start(&poll_, polled_, [](uv_poll_t* poll, int status, int events) {
                   static_cast<PeerSocket*>(poll->data)->OnEvents(status != 0, events);
                 }) == 0);
}

// After an error libuv looks no more; reading or sending finds the error.
void PeerSocket::OnEvents(bool error, int events) {
  const int seen = error ? UV_READABLE | UV_WRITABLE : events;
  if (error || (seen & polled_ & ~wanted()) != 0) {
    uv_poll_stop(&poll_);
    polled_ = 0;
    Poll();
  }
  // Bytes that came before the error are received first, if the system still has them.
  if ((seen & UV_WRITABLE) != 0 && kept_left() > 0 && !(error && reads())) SendKept();
  if ((seen & UV_READABLE) != 0 && reads() && !readable_) {
    readable_ = true;
    owner_->OnReadable(this);
  }
}

void PeerSocket::SendKept() {
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

// The engine counts the bytes that are left, so the memory must not be much more.
void PeerSocket::DropSent() {
  wire::OutputBuffer left;
  left.Append(kept_.view().substr(kept_sent_));
  kept_.swap(left);
  kept_sent_ = 0;
}

void PeerSocket::OnFlushed() {
  int unread = 0;
  if (!linger_ && ioctl(fd_, FIONREAD, &unread) == 0 && unread == 0) return CloseNow();
  if (shutdown(fd_, SHUT_WR) != 0) return CloseNow();
  state_ = State::kLingering;
  Poll();
  owner_->OnLingering(id_);
}

}  // namespace nowcalls::server
