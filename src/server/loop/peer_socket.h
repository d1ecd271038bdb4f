// PeerSocket: the socket of one accepted connection, and its bytes that wait to leave.
//
// Thread: loop. The owner deletes it in OnClosed alone: libuv holds its handle.
//
//   open -> (flushing -> lingering) -> closed
//
// An orderly close sends kept bytes and the end of the stream, then drops input until the peer
// closes. The owner bounds it with CloseNow. A failed send closes at once.
#ifndef NOWCALLS_SERVER_LOOP_PEER_SOCKET_H_
#define NOWCALLS_SERVER_LOOP_PEER_SOCKET_H_

#include <sys/types.h>
#include <uv.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "engine/driver.h"
#include "net/channel.h"
#include "net/socket_turn.h"
#include "wire/output_buffer.h"

namespace nowcalls::server {

class PeerSocket final : public net::SocketTurn::Socket {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // True: the owner receives in this turn (net/socket_turn.h). False: it is asked again in the
    // next one. `ended`: no more will come, and with true the owner may receive later, too.
    virtual bool OnReadable(PeerSocket* socket, bool ended) = 0;
    // Bytes came while the channel shook hands; it may have done so, or failed, in `took_ns`.
    virtual void OnHandshake(engine::ConnectionId id, const net::Channel& channel,
                             uint64_t took_ns) = 0;
    // The view ends with the call.
    virtual void OnBytes(engine::ConnectionId id, std::string_view bytes) = 0;
    // The peer sends no more; it may still read.
    virtual void OnEndOfInput(engine::ConnectionId id) = 0;
    // An open socket has sent kept bytes; `kept` bytes still wait.
    virtual void OnSent(engine::ConnectionId id, size_t kept) = 0;
    // The same of a flushing socket.
    virtual void OnFlushing(engine::ConnectionId id) = 0;
    virtual void OnLingering(engine::ConnectionId id) = 0;
    // The channel failed; the socket closes.
    virtual void OnFailed(engine::ConnectionId id, const std::string& why) = 0;
    // Once, never within a call of a member. Deletes the socket.
    virtual void OnClosed(engine::ConnectionId id) = 0;
  };

  // Takes the connected, non-blocking `fd` and reads. nullptr: no memory; `fd` is closed.
  static std::unique_ptr<PeerSocket> Open(uv_loop_t* loop, int fd,
                                          std::unique_ptr<net::Channel> channel,
                                          engine::ConnectionId id, Owner* owner);
  PeerSocket(const PeerSocket&) = delete;
  PeerSocket& operator=(const PeerSocket&) = delete;

  engine::ConnectionId id() const { return id_; }
  int fd() const override { return fd_; }
  bool TakeReadable() override;
  void Received(ssize_t result, std::string_view bytes) override;
  void Sent(ssize_t result, std::string_view bytes) override;

  // Leaves with `turn`'s next SendAll, or later behind kept bytes. Ignored once closing. REQUIRES:
  // `bytes` stay until SendAll.
  void Send(std::string_view bytes, net::SocketTurn* turn);
  bool shakes_hands() const { return !closes() && channel_->shakes_hands(); }
  bool closes() const { return state_ != State::kOpen; }
  // Bytes not taken yet; 0 once closing.
  size_t kept() const { return state_ == State::kOpen ? kept_left() : 0; }

  void SetReading(bool on);

  // Closes when kept bytes have left; drops input from now on.
  void CloseAfterFlush();
  // The same, without lingering if the peer has sent nothing unread.
  void CloseWhenFlushed();
  // Kept bytes are lost.
  void CloseNow();

 private:
  PeerSocket(int fd, std::unique_ptr<net::Channel> channel, engine::ConnectionId id, Owner* owner)
      : fd_(fd), channel_(std::move(channel)), id_(id), owner_(owner) {}

  enum class State { kOpen, kFlushing, kLingering, kClosed };

  size_t kept_left() const { return kept_.size() - kept_sent_; }
  bool reads() const { return (state_ == State::kOpen && reading_) || state_ == State::kLingering; }
  int wanted() const;
  void Poll();
  void StopPolling();
  void OnEvents(bool error, int events);
  void Take(std::string_view from_socket);
  void Keep(std::string_view for_socket);
  void SendKept();
  void DropSent();
  void OnFlushed();

  const int fd_;
  const std::unique_ptr<net::Channel> channel_;
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

#endif  // NOWCALLS_SERVER_LOOP_PEER_SOCKET_H_
