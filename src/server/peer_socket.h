// PeerSocket: the socket of one accepted connection, and the bytes that wait to leave by it.
//
// Thread: loop. The owner deletes it in OnClosed and not before, since libuv holds its handle until
// then. It is received from when the loop has found it readable, together with other sockets
// (base/socket_turn.h), until reading is switched off. Bytes that the socket does not take at once
// are kept and sent when it does; the engine bounds how many that may become. All bytes pass a
// ByteChannel on their way between the socket and the owner.
//
//   open -> (flushing -> lingering) -> closed
//
// Happy path of an orderly close: kept bytes are sent, then the end of the stream; bytes that the
// peer still sends are dropped until it closes too. If the socket closed at once, the kernel would
// answer those bytes with a reset, which can destroy the last replies before the peer reads them.
// Failure modes: the peer goes away or a send fails at any moment: closed at once. The peer neither
// reads nor closes: the owner calls CloseNow after a while.
#ifndef NOWCALLS_SERVER_PEER_SOCKET_H_
#define NOWCALLS_SERVER_PEER_SOCKET_H_

#include <sys/types.h>
#include <uv.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/byte_channel.h"
#include "base/socket_turn.h"
#include "engine/driver.h"
#include "wire/output_buffer.h"

namespace nowcalls::server {

class PeerSocket final : public SocketTurn::Socket {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // The socket may be received from; the owner does so in this turn of the loop.
    virtual void OnReadable(PeerSocket* socket) = 0;
    // Bytes of the protocol. The view ends with the call.
    virtual void OnBytes(engine::ConnectionId id, std::string_view bytes) = 0;
    // The peer sends no more; it may still read.
    virtual void OnEndOfInput(engine::ConnectionId id) = 0;
    // Of an open socket: kept bytes, of Send or of the channel's own, have left, and `kept` bytes
    // still wait.
    virtual void OnSent(engine::ConnectionId id, size_t kept) = 0;
    // The same of a socket that closes once nothing is kept.
    virtual void OnFlushing(engine::ConnectionId id) = 0;
    // Everything was sent; the socket waits for the peer's end of the stream.
    virtual void OnLingering(engine::ConnectionId id) = 0;
    // The channel has failed; the socket closes.
    virtual void OnFailed(engine::ConnectionId id, const std::string& why) = 0;
    // Exactly once, never from within a call of a member. Deletes the socket.
    virtual void OnClosed(engine::ConnectionId id) = 0;
  };

  // Takes over the connected, non-blocking socket `fd` and starts to read. nullptr: the system has
  // no memory to watch it; `fd` is closed.
  static std::unique_ptr<PeerSocket> Open(uv_loop_t* loop, int fd,
                                          std::unique_ptr<ByteChannel> channel,
                                          engine::ConnectionId id, Owner* owner);
  PeerSocket(const PeerSocket&) = delete;
  PeerSocket& operator=(const PeerSocket&) = delete;

  // SocketTurn::Socket.
  int fd() const override { return fd_; }
  bool TakeReadable() override;
  void Received(ssize_t result, std::string_view bytes) override;
  void Sent(ssize_t result, std::string_view bytes) override;

  // Sends bytes of the protocol behind all that was sent before: with `turn`'s next SendAll, or
  // later if bytes are kept already. Nothing happens once the socket is being closed. REQUIRES:
  // `bytes` stay until SendAll.
  void Send(std::string_view bytes, SocketTurn* turn);
  // Bytes that wait until the socket takes them. 0 once it is being closed.
  size_t kept() const { return state_ == State::kOpen ? kept_left() : 0; }

  void SetReading(bool on);

  // Closes after sending what is kept; bytes that arrive from now on are dropped.
  void CloseAfterFlush();
  // The same, but at once where that cannot destroy anything: the peer has sent nothing unread.
  void CloseWhenFlushed();
  // Closes at once; what is kept is lost.
  void CloseNow();

 private:
  PeerSocket(int fd, std::unique_ptr<ByteChannel> channel, engine::ConnectionId id, Owner* owner)
      : fd_(fd), channel_(std::move(channel)), id_(id), owner_(owner) {}

  enum class State { kOpen, kFlushing, kLingering, kClosed };

  size_t kept_left() const { return kept_.size() - kept_sent_; }
  bool reads() const { return (state_ == State::kOpen && reading_) || state_ == State::kLingering; }
  int wanted() const;
  void Poll();
  void OnEvents(bool error, int events);
  void Take(std::string_view from_socket);
  void Keep(std::string_view for_socket);
  void SendKept();
  void DropSent();
  void OnFlushed();

  const int fd_;
  const std::unique_ptr<ByteChannel> channel_;
  const engine::ConnectionId id_;
  Owner* const owner_;
  State state_ = State::kOpen;
  bool reading_ = true;
  bool linger_ = true;     // Wait for the peer's end of the stream before closing.
  bool readable_ = false;  // The owner was told so.
  int polled_ = 0;         // The events that poll_ looks for.
  uv_poll_t poll_{};
  wire::OutputBuffer kept_;  // Bytes for the socket, of which `kept_sent_` have left.
  size_t kept_sent_ = 0;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_PEER_SOCKET_H_
