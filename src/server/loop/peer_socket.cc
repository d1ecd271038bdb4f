#include "server/loop/peer_socket.h"

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
                                             std::unique_ptr<net::Channel> channel,
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
  Poll();  // One that has ended and does not close now is asked about again.
  return reads() && (told || state_ == State::kOpen);  // Bytes that are dropped can wait.
}

// Bytes of other sockets were handled since the receive, and may have stopped the reading here:
// then an end of the stream is left, and comes again.
void PeerSocket::Received(ssize_t result, std::string_view bytes) {
  if (IsAgain(result)) return;
  if (result > 0) {
    // Input of a lingering socket is dropped.
    if (state_ == State::kOpen) Take(bytes);
    // The peer has closed, or the connection is broken.
  } else if (result < 0 || state_ == State::kLingering) {
    CloseNow();
  } else if (reads()) {
    // The peer sends no more: no reset can destroy replies, so no lingering.
    linger_ = reading_ = false;
    owner_->OnEndOfInput(id_);
  }
}

void PeerSocket::Take(std::string_view from_socket) {
  const bool shook = channel_->shakes_hands();
  const uint64_t began_ns = shook ? uv_hrtime() : 0;
  const net::Channel::Received received = channel_->Receive(from_socket);
  const uint64_t took_ns = shook ? uv_hrtime() - began_ns : 0;
  // Bytes of the channel's own, as of a handshake, may leave before any reply.
  Keep(received.reply);
  if (shook) owner_->OnHandshake(id_, *channel_, took_ns);
  // Whoever the peer has proved to be may not be welcome.
  if (!received.bytes.empty() && state_ == State::kOpen) owner_->OnBytes(id_, received.bytes);
  channel_->Trim();
  if (!received.failed || state_ == State::kClosed) return;
  // A channel that failed gives no more bytes; replies before the fault still leave.
  owner_->OnFailed(id_, channel_->error());
  CloseAfterFlush();
}

void PeerSocket::Send(std::string_view bytes, net::SocketTurn* turn) {
  if (state_ != State::kOpen) return;
  const std::string_view for_socket = channel_->Send(bytes);
  if (for_socket.empty()) return;
  // Order: nothing overtakes kept bytes.
  if (kept_left() > 0) return Keep(for_socket);
  turn->Send(this, for_socket);
}

void PeerSocket::Sent(ssize_t result, std::string_view bytes) {
  if (result < 0 && !IsAgain(result)) return CloseNow();
  if (result > 0) bytes.remove_prefix(static_cast<size_t>(result));
  Keep(bytes);
  channel_->Trim();
}

void PeerSocket::Keep(std::string_view for_socket) {
  if (state_ != State::kOpen || for_socket.empty()) return;
  // Bytes that have left are dropped once they are the larger part: few copies a byte.
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
  // libuv first: it must not poll a descriptor that another socket may get.
  state_ = State::kClosed;
  uv_close(reinterpret_cast<uv_handle_t*>(&poll_), [](uv_handle_t* closed) {
    auto* self = static_cast<PeerSocket*>(closed->data);
    self->owner_->OnClosed(self->id_);
  });
  close(fd_);
}

int PeerSocket::wanted() const {
  return (reads() ? UV_READABLE | UV_DISCONNECT : 0) | (kept_left() > 0 ? UV_WRITABLE : 0);
}

// Polls for what is wanted, at least. Reading that stops often goes on in the same turn, and each
// change is a system call or two. So an unwanted event alone ends the polling for it.
void PeerSocket::Poll() {
  if ((wanted() & ~polled_) == 0) return;
  polled_ = wanted();
  NOWCALLS_CHECK(uv_poll_start(&poll_, polled_, [](uv_poll_t* poll, int status, int events) {
                   static_cast<PeerSocket*>(poll->data)->OnEvents(status != 0, events);
                 }) == 0);
}

void PeerSocket::StopPolling() {
  uv_poll_stop(&poll_);
  polled_ = 0;
}

// libuv polls no more after an error; a receive or send finds the reason.
void PeerSocket::OnEvents(bool error, int events) {
  const int seen = error ? UV_READABLE | UV_WRITABLE : events;
  if (error || (seen & polled_ & ~wanted()) != 0) {
    StopPolling();
    Poll();
  }
  // Bytes that came before the error are received first, if the kernel still has them.
  if ((seen & UV_WRITABLE) != 0 && kept_left() > 0 && !(error && reads())) SendKept();
  if ((seen & UV_READABLE) != 0 && reads() && !readable_) {
    const bool ended = error || (seen & UV_DISCONNECT) != 0;
    if (ended) StopPolling();
    readable_ = true;  // Before the call, which may receive at once: TakeReadable takes it back.
    if (owner_->OnReadable(this, ended)) return;
    readable_ = false;
    Poll();
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
  // Memory goes back as the buffer drains, not at its end.
  if (kept_left() < kept_.capacity() / 4) DropSent();
  if (kept_left() == 0 && state_ == State::kFlushing) return OnFlushed();
  if (state_ == State::kOpen) {
    owner_->OnSent(id_, kept_left());
  } else {
    owner_->OnFlushing(id_);
  }
}

// The engine counts kept bytes, so the buffer must not hold much more memory.
void PeerSocket::DropSent() {
  wire::OutputBuffer left;
  left.Append(kept_.view().substr(kept_sent_));
  kept_.swap(left);
  kept_sent_ = 0;
}

void PeerSocket::OnFlushed() {
  // A socket that closes with unread input makes the kernel send a reset, which can destroy the
  // last replies before the peer reads them. So: end of stream, then drop input until the peer
  // closes.
  int unread = 0;
  if (!linger_ && ioctl(fd_, FIONREAD, &unread) == 0 && unread == 0) return CloseNow();
  if (shutdown(fd_, SHUT_WR) != 0) return CloseNow();
  state_ = State::kLingering;
  Poll();
  owner_->OnLingering(id_);
}

}  // namespace nowcalls::server
