#include "server/connection.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "base/check.h"

namespace nowcalls::server {

Connection::Connection(uv_loop_t* loop, int fd, engine::ConnectionId id, ReadBuffer* buffer,
                       Owner* owner)
    : id_(id), buffer_(buffer), owner_(owner) {
  tcp_.data = this;
  NOWCALLS_CHECK(uv_tcp_init(loop, &tcp_) == 0);
  if (uv_tcp_open(&tcp_, fd) != 0) {
    close(fd);
    CloseNow();
  } else {
    StartReading();
  }
}

size_t Connection::Write(std::string_view bytes) {
  if (state_ != State::kOpen) return 0;
  if (!writing_) {
    uv_buf_t rest = uv_buf_init(const_cast<char*>(bytes.data()),  // NOLINT: libuv only reads it.
                                static_cast<unsigned>(bytes.size()));
    const int sent = uv_try_write(stream(), &rest, 1);
    if (sent < 0 && sent != UV_EAGAIN) {
      CloseNow();
      return 0;
    }
    if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
  }
  if (bytes.empty()) return 0;
  next_.append(bytes);
  if (!writing_) SendNext();
  return kept();
}

void Connection::SetReading(bool on) {
  if (state_ != State::kOpen) return;
  if (on) {
    StartReading();
  } else {
    uv_read_stop(stream());
  }
}

void Connection::CloseAfterFlush() {
  if (state_ != State::kOpen) return;
  state_ = State::kFlushing;
  uv_read_stop(stream());
  if (!writing_) OnFlushed();
}

void Connection::CloseWhenFlushed() {
  linger_ = false;
  CloseAfterFlush();
}

void Connection::CloseNow() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  uv_close(handle(), [](uv_handle_t* closed) {
    auto* self = static_cast<Connection*>(closed->data);
    self->owner_->OnClosed(self->id_);
  });
}

size_t Connection::kept() const {
  return uv_stream_get_write_queue_size(reinterpret_cast<const uv_stream_t*>(&tcp_)) + next_.size();
}

void Connection::StartReading() {
  const int error = uv_read_start(
      stream(),
      [](uv_handle_t* handle, size_t, uv_buf_t* buffer) {
        ReadBuffer* shared = static_cast<Connection*>(handle->data)->buffer_;
        *buffer = uv_buf_init(shared->bytes, sizeof(shared->bytes));
      },
      [](uv_stream_t* stream, ssize_t size, const uv_buf_t*) {
        static_cast<Connection*>(stream->data)->OnRead(size);
      });
  if (error != 0 && error != UV_EALREADY) CloseNow();
}

void Connection::SendNext() {
  sending_ = std::exchange(next_, {});
  const uv_buf_t bytes = uv_buf_init(sending_.data(), static_cast<unsigned>(sending_.size()));
  write_.data = this;
  writing_ = true;
  const int error = uv_write(&write_, stream(), &bytes, 1, [](uv_write_t* request, int status) {
    static_cast<Connection*>(request->data)->OnWritten(status);
  });
  if (error == 0) return;
  writing_ = false;
  CloseNow();
}

void Connection::OnRead(ssize_t size) {
  if (size == UV_EOF && state_ == State::kOpen) {
    linger_ = false;
    uv_read_stop(stream());
    return owner_->OnEndOfInput(id_);
  }
  if (size < 0) return CloseNow();
  if (size > 0 && state_ == State::kOpen) {
    owner_->OnBytes(id_, {buffer_->bytes, static_cast<size_t>(size)});
  }
}

void Connection::OnWritten(int status) {
  writing_ = false;
  sending_ = {};
  if (state_ == State::kClosed) return;
  if (status != 0) return CloseNow();
  if (!next_.empty()) {
    SendNext();
  } else if (state_ == State::kFlushing) {
    OnFlushed();
  }
  if (state_ == State::kOpen) owner_->OnSent(id_, kept());
}

void Connection::OnFlushed() {
  uv_os_fd_t fd = -1;
  if (uv_fileno(handle(), &fd) != 0) return CloseNow();
  int unread = 0;
  if (!linger_ && ioctl(fd, FIONREAD, &unread) == 0 && unread == 0) return CloseNow();
  if (shutdown(fd, SHUT_WR) != 0) return CloseNow();
  state_ = State::kLingering;
  StartReading();
}

}  // namespace nowcalls::server
