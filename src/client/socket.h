// Socket: a TCP connection whose every step ends at a deadline.
//
// Thread: one at a time. Deadlines are BoottimeMs values. No call raises SIGPIPE. All bytes pass a
// ByteChannel.
#ifndef NOWCALLS_CLIENT_SOCKET_H_
#define NOWCALLS_CLIENT_SOCKET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/byte_channel.h"
#include "base/host_port.h"
#include "client/resolve.h"
#include "nowcalls/status.h"

namespace nowcalls::client {

class Socket {
 public:
  // Begins with the first address of `peer`, with each next one 250 ms later or its share of the
  // time, or when one refuses. The first that answers is taken, so that one that swallows packets
  // does not hide those behind it. kUnavailable says why the last one failed, without the peer's
  // name. The lookup of a host name counts, too.
  static Result<Socket> Connect(const HostPort& peer, int64_t deadline_ms,
                                const Lookup& lookup = getaddrinfo,
                                std::unique_ptr<ByteChannel> channel = PlainChannel::Make());

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

  // For an owner that polls: sends what the socket takes at once and keeps the rest for the next
  // SendNow. kUnavailable: the peer cannot have them all.
  Status SendNow(std::string_view bytes);
  bool has_unsent() const { return !unsent_.empty(); }
  // Appends what has arrived, perhaps nothing. kUnavailable: closed by the peer or broken; *bytes
  // has what came before that.
  Status ReceiveNow(std::string* bytes);
  int fd() const { return fd_; }
  // Ends the connection, and every wait for it. The descriptor stays until the destructor.
  void Shutdown() const;

  // Appends at least one byte to *bytes. kUnavailable: closed by the peer or broken.
  // kOutcomeUnknown: none came in time.
  Status Receive(std::string* bytes, int64_t deadline_ms);

 private:
  explicit Socket(int fd) : fd_(fd) {}

  // Without a channel.
  static Result<Socket> ConnectToFirst(const addrinfo* next, int64_t deadline_ms);
  Status SendAll(std::string_view for_socket, int64_t deadline_ms) const;

  int fd_;
  std::unique_ptr<ByteChannel> channel_;
  std::string unsent_{};  // Bytes of the channel that SendNow could not send.
};

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_SOCKET_H_
