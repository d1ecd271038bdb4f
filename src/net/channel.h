// Channel: between a socket's bytes and a protocol's.
//
// Thread: one at a time. Does no I/O: the owner passes all bytes through the channel.
//
// A channel may hold bytes back, as TLS until its handshake; a later Receive returns them as
// `reply`, which the owner sends.
#ifndef NOWCALLS_NET_CHANNEL_H_
#define NOWCALLS_NET_CHANNEL_H_

#include <memory>
#include <string>
#include <string_view>

namespace nowcalls::net {

class Channel {
 public:
  // Views are valid until the next Receive, whatever is sent.
  struct Received {
    std::string_view bytes{};  // For the protocol; may be empty although the socket had some.
    std::string_view reply{};  // For the socket, behind all that was sent before.
    bool failed = false;       // After `bytes` and `reply` nothing follows: close; see error().
  };

  virtual ~Channel() = default;

  virtual Received Receive(std::string_view from_socket) = 0;

  // Returns the bytes for the socket, valid until the next Send, Close or Trim.
  virtual std::string_view Send(std::string_view from_protocol) = 0;

  // The last Send. Returns the channel's last bytes for the socket.
  virtual std::string_view Close() = 0;

  // Ends all views, and frees the memory behind them.
  virtual void Trim() {}

  // Why the channel failed, for a person.
  virtual std::string error() const = 0;
  // It failed since the peer does not let this end's certificate in, or asks for one.
  virtual bool denied() const { return false; }

  // True: no byte of a protocol has passed yet, nor can it.
  virtual bool shakes_hands() const = 0;
  // The name that the peer has proved to have; empty: none. REQUIRES: !shakes_hands().
  virtual std::string_view peer() const = 0;
  // Nobody on the way reads the bytes. REQUIRES: !shakes_hands().
  virtual bool encrypted() const = 0;
};

class PlainChannel final : public Channel {
 public:
  static std::unique_ptr<Channel> Make() { return std::make_unique<PlainChannel>(); }

  Received Receive(std::string_view from_socket) override { return {.bytes = from_socket}; }
  std::string_view Send(std::string_view from_protocol) override { return from_protocol; }
  std::string_view Close() override { return {}; }
  std::string error() const override { return {}; }
  bool shakes_hands() const override { return false; }
  std::string_view peer() const override { return {}; }
  bool encrypted() const override { return false; }
};

}  // namespace nowcalls::net

#endif  // NOWCALLS_NET_CHANNEL_H_
