// Socket: a connection to a server, whose every step ends at a deadline.
//
// Thread: one at a time. Deadlines are BoottimeMs values. No SIGPIPE.
#ifndef NOWCALLS_NET_SOCKET_H_
#define NOWCALLS_NET_SOCKET_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "net/address.h"
#include "net/channel.h"
#include "net/endpoint.h"
#include "net/resolve.h"
#include "nowcalls/status.h"

namespace nowcalls::net {

class Socket {
 public:
  // Takes the first address that answers, dialled as in RFC 8305. The deadline includes the lookup
  // and the channel's handshake. Without the server's name: kUnavailable: why the last address
  // failed; kFailedPrecondition: why the handshake did; kPermissionDenied: why the server does not
  // let the client's certificate in.
  static Result<Socket> Connect(const Endpoint& server, int64_t deadline_ms,
                                const Lookup& lookup = getaddrinfo,
                                std::unique_ptr<Channel> channel = PlainChannel::Make());

  Socket(Socket&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        channel_(std::move(other.channel_)),
        unsent_(std::move(other.unsent_)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(channel_, other.channel_);
    std::swap(unsent_, other.unsent_);
    return *this;
  }
  ~Socket();

  // Sends all bytes. kUnavailable: the peer cannot have them all.
  Status Send(std::string_view bytes, int64_t deadline_ms);

  // Without blocking: buffers the rest for the next SendNow. Errors as Send.
  Status SendNow(std::string_view bytes);
  bool has_unsent() const { return !unsent_.empty(); }
  // Appends 0 to about 1 MiB. kUnavailable: closed or broken; kPermissionDenied: as Connect, since
  // TLS 1.3 tells it behind the handshake. *bytes has the bytes before.
  Status ReceiveNow(std::string* bytes);
  int fd() const { return fd_; }
  bool encrypted() const { return channel_->encrypted(); }
  // Ends the connection and every wait for it. The descriptor stays.
  void Shutdown() const;

  // Appends at least a byte. Errors as ReceiveNow. kOutcomeUnknown: none in time.
  Status Receive(std::string* bytes, int64_t deadline_ms);

 private:
  explicit Socket(int fd) : fd_(fd) {}

  // Without a channel.
  static Result<Socket> ConnectToFirst(std::span<const SocketAddress> addresses,
                                       int64_t deadline_ms);
  Status ShakeHands(int64_t deadline_ms);
  Status SendAll(std::string_view for_socket, int64_t deadline_ms) const;

  int fd_;
  std::unique_ptr<Channel> channel_;
  std::string unsent_{};  // Bytes of the channel that SendNow could not send.
};

}  // namespace nowcalls::net

#endif  // NOWCALLS_NET_SOCKET_H_
