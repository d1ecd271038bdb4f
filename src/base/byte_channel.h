// ByteChannel: the seam between the bytes of a socket and the bytes of a protocol.
//
// Thread: one at a time. A channel does no I/O. Its owner reads the socket and writes it, alone or
// in batches (base/socket_turn.h), and passes all bytes through the channel. The plain channel
// returns the view that it is given, so it copies nothing. TLS is a channel whose library reads and
// writes memory instead of a socket.
//
// A channel may hold bytes of the protocol back, as TLS does until its handshake is over. It hands
// them out as `reply` of a later Receive, so an owner that sends every reply and goes on receiving
// needs no state of its own for a handshake.
#ifndef NOWCALLS_BASE_BYTE_CHANNEL_H_
#define NOWCALLS_BASE_BYTE_CHANNEL_H_

#include <memory>
#include <string>
#include <string_view>

namespace nowcalls {

class ByteChannel {
 public:
  // Views are valid until the next Receive, whatever is sent meanwhile.
  struct Received {
    std::string_view bytes{};  // For the protocol; may be empty although the socket had some.
    std::string_view reply{};  // For the socket, behind all that was sent before.
    bool failed = false;       // After `bytes` and `reply` nothing follows: close; see error().
  };

  virtual ~ByteChannel() = default;

  // Takes what the socket has brought.
  virtual Received Receive(std::string_view from_socket) = 0;

  // Takes what the protocol sends. Returns what the socket is to send, valid until the next Send or
  // Close.
  virtual std::string_view Send(std::string_view from_protocol) = 0;

  // The protocol sends no more. Returns the channel's last bytes for the socket.
  virtual std::string_view Close() = 0;

  // Why the channel failed, for a person.
  virtual std::string error() const = 0;
};

class PlainChannel final : public ByteChannel {
 public:
  static std::unique_ptr<ByteChannel> Make() { return std::make_unique<PlainChannel>(); }

  Received Receive(std::string_view from_socket) override { return {.bytes = from_socket}; }
  std::string_view Send(std::string_view from_protocol) override { return from_protocol; }
  std::string_view Close() override { return {}; }
  std::string error() const override { return {}; }
};

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_BYTE_CHANNEL_H_
