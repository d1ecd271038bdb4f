// FakeServer: one connection on 127.0.0.1 whose answers a test writes.
//
// Thread: the test's and its own, which runs the script. The destructor closes both sockets and
// joins it.
#ifndef NOWCALLS_SUPPORT_FAKE_SERVER_H_
#define NOWCALLS_SUPPORT_FAKE_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "net/channel.h"
#include "wire/messages.h"
#include "wire/output_buffer.h"

namespace nowcalls::testing {

class FakeServer {
 public:
  // The server's side of the connection, for the script.
  class Peer {
   public:
    Peer(int fd, std::unique_ptr<net::Channel> channel) : fd_(fd), channel_(std::move(channel)) {}
    // The next request; false when the client has closed.
    bool Take(wire::Envelope* request);
    // False when the client has closed.
    bool Send(std::string_view bytes) const;
    // Answers with what encode(out) writes.
    void Answer(const std::function<void(wire::OutputBuffer*)>& encode) const;
    // Waits until the client closes.
    void AwaitClose() const;

   private:
    bool SendRaw(std::string_view bytes) const;

    int fd_;
    std::unique_ptr<net::Channel> channel_;
    std::string input_;
    std::string message_;
  };

  using MakeChannel = std::function<std::unique_ptr<net::Channel>()>;

  // Accepts one connection, runs the script on it and closes it.
  explicit FakeServer(std::function<void(Peer*)> script,
                      MakeChannel make_channel = net::PlainChannel::Make);
  ~FakeServer();
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  uint16_t port_ = 0;
  int listener_;
  std::thread thread_;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_FAKE_SERVER_H_
