#include "bench/connection.h"

#include "base/check.h"

namespace nowcalls::bench {
namespace {

Status UvError(const std::string& what, ssize_t error) {
  return Status::Unavailable(what + ": " + uv_strerror(static_cast<int>(error)));
}

}  // namespace

void Connection::Open(uv_loop_t* loop, const sockaddr* address) {
  tcp_.data = connect_.data = write_.data = this;
  NOWCALLS_CHECK(uv_tcp_init(loop, &tcp_) == 0);
  open_ = true;
  const int error =
      uv_tcp_connect(&connect_, &tcp_, address, [](uv_connect_t* request, int status) {
        static_cast<Connection*>(request->data)->OnConnected(status);
      });
  if (error != 0) Lose(UvError("could not be opened", error));
}

void Connection::Close() {
  if (!open_) return;
  open_ = false;
  uv_close(reinterpret_cast<uv_handle_t*>(&tcp_), nullptr);
}

void Connection::Lose(const Status& reason) {
  if (!open_) return;
  Close();
  owner_->OnLost(this, reason);
}

// A server that is at its limit accepts and closes, and what it has not read makes that a reset:
// the bytes of the greeting race with it.
void Connection::LoseBy(ssize_t error) {
  const bool by_server = error == UV_EOF || error == UV_ECONNRESET || error == UV_EPIPE;
  if (by_server && !greeted_) {
    return Lose(Status::Unavailable(
        "was closed by the server at once; it may be at its limit of connections"));
  }
  Lose(error == UV_EOF ? Status::Unavailable("was closed by the server; its log may say why")
                       : UvError("was lost", error));
}

void Connection::OnConnected(int status) {
  if (!open_) return;
  if (status == UV_ECONNRESET) return LoseBy(status);
  if (status != 0) return Lose(UvError("could not be opened", status));
  uv_tcp_nodelay(&tcp_, 1);
  const int error = uv_read_start(
      stream(),
      [](uv_handle_t* handle, size_t, uv_buf_t* buffer) {
        ReadBuffer* shared = static_cast<Connection*>(handle->data)->buffer_;
        *buffer = uv_buf_init(shared->bytes, sizeof(shared->bytes));
      },
      [](uv_stream_t* stream, ssize_t size, const uv_buf_t*) {
        static_cast<Connection*>(stream->data)->OnRead(size);
      });
  if (error != 0) return Lose(UvError("cannot be read", error));
  protocol_->Greet(&out_);
  Flush();
}

void Connection::Flush() {
  if (!open_ || writing_ || out_.empty()) return;
  uv_buf_t bytes = uv_buf_init(const_cast<char*>(out_.data()),  // NOLINT: libuv only reads it.
                               static_cast<unsigned>(out_.size()));
  const int sent = uv_try_write(stream(), &bytes, 1);
  if (sent < 0 && sent != UV_EAGAIN) return LoseBy(sent);
  if (sent == static_cast<int>(out_.size())) return out_.Clear();
  if (sent > 0) out_.Consume(static_cast<size_t>(sent));
  sending_.Clear();
  sending_.swap(out_);
  bytes = uv_buf_init(const_cast<char*>(sending_.data()),  // NOLINT: libuv only reads it.
                      static_cast<unsigned>(sending_.size()));
  writing_ = true;
  const int error = uv_write(&write_, stream(), &bytes, 1, [](uv_write_t* request, int status) {
    static_cast<Connection*>(request->data)->OnWritten(status);
  });
  if (error == 0) return;
  writing_ = false;
  LoseBy(error);
}

void Connection::OnWritten(int status) {
  writing_ = false;
  if (status != 0) return LoseBy(status);
  Flush();
}

void Connection::OnRead(ssize_t size) {
  const Moment now = Now();
  if (size < 0) return LoseBy(size);
  const std::string_view bytes(buffer_->bytes, static_cast<size_t>(size));
  if (rest_.empty()) {
    rest_.assign(bytes.substr(TakeAnswers(bytes, now)));
  } else {
    rest_.append(bytes);
    rest_.erase(0, TakeAnswers(rest_, now));
  }
  if (open_) owner_->OnAnswersTaken(this, now);
}

size_t Connection::TakeAnswers(std::string_view bytes, const Moment& now) {
  std::string_view input = bytes;
  Answer answer;
  while (open_ && !input.empty()) {
    const Protocol::Outcome outcome = protocol_->Take(&input, &answer);
    if (outcome == Protocol::Outcome::kIncomplete) break;
    if (outcome == Protocol::Outcome::kInvalid) {
      Lose(Status::Unavailable("brought an answer that is not understood: " + protocol_->error()));
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
