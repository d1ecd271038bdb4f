// Connection: one accepted socket on the loop.
//
// Thread: loop. The owner deletes it in OnClosed and not before, since libuv may hold its handle
// until then. It knows when its socket can be read and written, and what becomes of what is
// received and sent; most of that is done for many connections at once (SocketTurn).
//
//   open -> (flushing -> lingering) -> closed
//
// Happy path of an orderly close: what is kept is sent, then the end of the stream, and what the
// peer still sends is dropped until it closes too; closing at once instead would make the kernel
// answer those bytes with a reset, which can destroy the last replies before the peer reads them.
// Failure modes: the peer goes away or a send fails at any moment: closed at once. The peer
// neither reads nor closes: the owner calls CloseNow after a while.
#ifndef NOWCALLS_SERVER_CONNECTION_H_
#define NOWCALLS_SERVER_CONNECTION_H_

#include <sys/types.h>
#include <uv.h>

#include <cstddef>
#include <memory>
#include <string_view>

#include "base/socket_turn.h"
#include "engine/driver.h"
#include "wire/output_buffer.h"

namespace nowcalls::server {

class Connection final : public SocketTurn::Socket {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // It may be received from; the owner does, in this turn of the loop.
    virtual void OnReadable(Connection* connection) = 0;
    // The bytes are gone after the call.
    virtual void OnBytes(engine::ConnectionId id, std::string_view bytes) = 0;
    // The peer sends no more; it may still read.
    virtual void OnEndOfInput(engine::ConnectionId id) = 0;
    // Bytes that were kept have left; `kept` still wait. Of an open connection.
    virtual void OnSent(engine::ConnectionId id, size_t kept) = 0;
    // The same of one that closes after that.
    virtual void OnFlushing(engine::ConnectionId id) = 0;
    // All of it was sent, and it waits for the peer's end of the stream.
    virtual void OnLingering(engine::ConnectionId id) = 0;
    // Exactly once, never from within a call of a member. Deletes the connection.
    virtual void OnClosed(engine::ConnectionId id) = 0;
  };

  // Takes the connected, non-blocking socket `fd` over and starts to read. nullptr: the system does
  // not allow to wait for it; `fd` is closed.
  static std::unique_ptr<Connection> Open(uv_loop_t* loop, int fd, engine::ConnectionId id,
                                          Owner* owner);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // SocketTurn::Socket.
  int fd() const override { return fd_; }
  bool TakeReadable() override;
  void Received(ssize_t result, std::string_view bytes) override;
  void Sent(ssize_t result, std::string_view bytes) override;

  // Whether bytes for it may be sent at once: it is open, and none are kept. What the socket does
  // not take then is kept.
  bool sends() const { return state_ == State::kOpen && kept_left() == 0; }
  // Sends `bytes` behind what is kept. Nothing happens once the connection is being closed.
  void Keep(std::string_view bytes);
  size_t kept() const { return state_ == State::kOpen ? kept_left() : 0; }

  void SetReading(bool on);

  // Closes after sending what is kept; bytes that arrive from now on are dropped.
  void CloseAfterFlush();
  // The same, but at once where that cannot destroy anything: the peer has sent nothing unread.
  void CloseWhenFlushed();
  // Closes at once; what is kept is lost.
  void CloseNow();

 private:
  Connection(int fd, engine::ConnectionId id, Owner* owner) : fd_(fd), id_(id), owner_(owner) {}

  enum class State { kOpen, kFlushing, kLingering, kClosed };

  size_t kept_left() const { return kept_.size() - kept_sent_; }
  bool reads() const { return (state_ == State::kOpen && reading_) || state_ == State::kLingering; }
  int wanted() const;
  void Poll();
  void OnEvents(bool error, int events);
  void SendKept();
  void DropSent();
  void OnFlushed();

  const int fd_;
  const engine::ConnectionId id_;
  Owner* const owner_;
  State state_ = State::kOpen;
  bool reading_ = true;
  bool linger_ = true;     // Wait for the peer's end of the stream before closing.
  bool readable_ = false;  // As the owner was told.
  int polled_ = 0;         // The events that poll_ looks for.
  uv_poll_t poll_{};
  wire::OutputBuffer kept_;
  size_t kept_sent_ = 0;  // Of its bytes.
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CONNECTION_H_
