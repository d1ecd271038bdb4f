// Connection: one accepted socket on the loop.
//
// Thread: loop. The owner deletes it in OnClosed and not before, since libuv may hold its handle
// until then.
//
//   open -> (flushing -> lingering) -> closed
//
// Happy path of an orderly close: what is kept is sent, then the end of the stream, and what the
// peer still sends is dropped until it closes too; closing at once instead would make the kernel
// answer those bytes with a reset, which can destroy the last replies before the peer reads them.
// Failure modes: the peer goes away or a write fails at any moment: closed at once. The peer
// neither reads nor closes: the owner calls CloseNow after a while.
#ifndef NOWCALLS_SERVER_CONNECTION_H_
#define NOWCALLS_SERVER_CONNECTION_H_

#include <uv.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/driver.h"

namespace nowcalls::server {

// Where all connections read into: libuv fills it and hands it over within one call, so one is
// enough. Small, because what a turn has no room for is kept for each connection.
struct ReadBuffer {
  char bytes[16 * 1024] = {};
};

class Connection {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // The bytes are gone after the call.
    virtual void OnBytes(engine::ConnectionId id, std::string_view bytes) = 0;
    // The peer sends no more; it may still read.
    virtual void OnEndOfInput(engine::ConnectionId id) = 0;
    // Bytes that were kept have left; `kept` still wait.
    virtual void OnSent(engine::ConnectionId id, size_t kept) = 0;
    // Exactly once, never from within a call of a member. Deletes the connection.
    virtual void OnClosed(engine::ConnectionId id) = 0;
  };

  // Takes the connected, non-blocking socket `fd` over and starts to read. If the system refuses
  // that, the connection closes itself.
  Connection(uv_loop_t* loop, int fd, engine::ConnectionId id, ReadBuffer* buffer, Owner* owner);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Sends behind what was sent before. Returns the bytes kept because the socket does not take
  // them yet. Nothing happens once the connection is being closed.
  size_t Write(std::string_view bytes);

  void SetReading(bool on);

  // Closes after sending what is kept; bytes that arrive from now on are dropped.
  void CloseAfterFlush();
  // The same, but at once where that cannot destroy anything: the peer has sent nothing unread.
  void CloseWhenFlushed();
  // Closes at once; what is kept is lost.
  void CloseNow();

 private:
  enum class State { kOpen, kFlushing, kLingering, kClosed };

  uv_stream_t* stream() { return reinterpret_cast<uv_stream_t*>(&tcp_); }
  uv_handle_t* handle() { return reinterpret_cast<uv_handle_t*>(&tcp_); }
  size_t kept() const;
  void StartReading();
  void SendNext();
  void OnRead(ssize_t size);
  void OnWritten(int status);
  void OnFlushed();

  const engine::ConnectionId id_;
  ReadBuffer* const buffer_;
  Owner* const owner_;
  State state_ = State::kOpen;
  bool linger_ = true;    // Wait for the peer's end of the stream before closing.
  bool writing_ = false;  // sending_ is with libuv.
  uv_tcp_t tcp_{};
  uv_write_t write_{};
  std::string sending_;
  std::string next_;  // What came while sending_ was with libuv.
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CONNECTION_H_
