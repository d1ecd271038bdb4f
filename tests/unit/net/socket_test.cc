#include "net/socket.h"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <future>
#include <string>
#include <vector>

#include "base/clock.h"
#include "support/poll_until.h"
#include "support/toy_channel.h"

namespace nowcalls::net {
namespace {

using testing::kPatienceMs;
using testing::PollUntil;
using testing::ToyChannel;

// A port of 127.0.0.1 that connections go to; a full one swallows them, as a firewall does.
class Port {
 public:
  explicit Port(bool full) {
    sockaddr_in address = Loopback(0);
    socklen_t size = sizeof(address);
    const int listener = Open();
    REQUIRE(bind(listener, As(&address), size) == 0);
    REQUIRE(listen(listener, full ? 0 : 16) == 0);
    REQUIRE(getsockname(listener, As(&address), &size) == 0);
    number_ = ntohs(address.sin_port);
    // More than the queue of one takes.
    for (int i = 0; full && i < 4; ++i) {
      static_cast<void>(connect(Open(), As(&address), size));  // In progress.
    }
    // Connections may reach the listener later than their connect has returned.
    if (full) REQUIRE(PollUntil(kPatienceMs, [&] { return Waiting(listener) > 0; }));
  }
  ~Port() {
    for (const int fd : fds_) close(fd);
  }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  std::string number() const { return std::to_string(number_); }
  uint16_t value() const { return number_; }
  // The next connection; it blocks, and is closed with the port.
  int Accept() {
    REQUIRE(PollUntil(kPatienceMs, [&] { return Waiting(fds_.front()) > 0; }));
    fds_.push_back(accept4(fds_.front(), nullptr, nullptr, SOCK_CLOEXEC));
    REQUIRE(fds_.back() >= 0);
    return fds_.back();
  }

 private:
  static sockaddr_in Loopback(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
  }
  static sockaddr* As(sockaddr_in* address) { return reinterpret_cast<sockaddr*>(address); }
  // Connections that nobody has accepted.
  static uint32_t Waiting(int listener) {
    tcp_info info{};
    socklen_t size = sizeof(info);
    REQUIRE(getsockopt(listener, IPPROTO_TCP, TCP_INFO, &info, &size) == 0);
    return info.tcpi_unacked;
  }
  int Open() {
    fds_.push_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    REQUIRE(fds_.back() >= 0);
    return fds_.back();
  }

  std::vector<int> fds_;
  uint16_t number_ = 0;
};

// A name with an address for each port, in this order.
Lookup NameOf(const std::vector<std::string>& ports) {
  return [ports](const char*, const char*, const addrinfo* hints, addrinfo** found) {
    *found = nullptr;
    addrinfo** end = found;
    for (const std::string& port : ports) {
      const int failure = getaddrinfo("127.0.0.1", port.c_str(), hints, end);
      if (failure != 0) return failure;
      end = &(*end)->ai_next;
    }
    return 0;
  };
}

TEST_CASE("an address that swallows packets does not hide a good one behind it") {
  const Port swallows(/*full=*/true);
  const Port good(/*full=*/false);
  const Endpoint name = Endpoint::Tcp({"db.example", 1});
  const auto lookup = NameOf({swallows.number(), swallows.number(), good.number()});
  const Result<Socket> socket = Socket::Connect(name, BoottimeMs() + 3'000, lookup);
  CHECK(socket.status().ToString() == "ok");
}

TEST_CASE("a dead address before the good one leaves most of the time, however much there is") {
  const Port swallows(/*full=*/true);
  const Port good(/*full=*/false);
  const auto lookup = NameOf({swallows.number(), good.number()});
  for (const int64_t timeout_ms : {int64_t{200}, int64_t{3'600'000}}) {
    const Result<Socket> socket =
        Socket::Connect(Endpoint::Tcp({"db.example", 1}), BoottimeMs() + timeout_ms, lookup);
    CHECK(socket.status().ToString() == "ok");
  }
}

TEST_CASE("an address that refuses gives way to the next at once") {
  std::string refuses;
  {
    const Port closed(/*full=*/false);
    refuses = closed.number();
  }
  const Port good(/*full=*/false);
  const auto lookup = NameOf({refuses, refuses, good.number()});
  const Result<Socket> socket =
      Socket::Connect(Endpoint::Tcp({"db.example", 1}), BoottimeMs() + kPatienceMs, lookup);
  CHECK(socket.status().ToString() == "ok");
  const auto nobody = NameOf({refuses, refuses});
  const Status refused =
      Socket::Connect(Endpoint::Tcp({"db.example", 1}), BoottimeMs() + kPatienceMs, nobody)
          .status();
  CHECK(refused.message() == "Connection refused");
}

TEST_CASE("when no address answers in time the connecting fails") {
  const Port swallows(/*full=*/true);
  const auto lookup = NameOf({swallows.number(), swallows.number()});
  const Result<Socket> socket =
      Socket::Connect(Endpoint::Tcp({"db.example", 1}), BoottimeMs() + 100, lookup);
  CHECK(socket.status().ToString() == "unavailable: Connection timed out");
}

TEST_CASE("a channel that shakes hands and changes bytes is unseen above the socket") {
  Port port(/*full=*/false);
  auto connecting = std::async(std::launch::async, [&] {
    return Socket::Connect(Endpoint::Tcp({"127.0.0.1", port.value()}), BoottimeMs() + kPatienceMs,
                           getaddrinfo, ToyChannel::Make(ToyChannel::End::kConnects));
  });
  const int64_t deadline_ms = BoottimeMs() + kPatienceMs;
  ToyChannel other_end(ToyChannel::End::kAccepts);
  const int accepted = port.Accept();
  const auto take = [&] {
    std::string bytes(100, '\0');
    bytes.resize(static_cast<size_t>(recv(accepted, bytes.data(), bytes.size(), 0)));
    return bytes;
  };
  const auto give = [&](std::string_view bytes) {
    CHECK(send(accepted, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  };

  CHECK(other_end.shakes_hands());
  auto received = other_end.Receive(take());
  CHECK(received.bytes.empty());  // A greeting alone.
  CHECK_FALSE(other_end.shakes_hands());
  CHECK(other_end.peer() == "toy");
  give(received.reply);
  Result<Socket> socket = connecting.get();
  REQUIRE(socket.status().ToString() == "ok");
  REQUIRE(socket->Send("hello", deadline_ms).ok());
  std::string bytes;
  // What came is the channel's own. The error of an older call is none of this one.
  give(other_end.Close());
  errno = ECONNRESET;
  CHECK(socket->Receive(&bytes, BoottimeMs()).ToString() ==
        "outcome_unknown: Connection timed out");
  give(other_end.Send("welcome"));
  CHECK(socket->Receive(&bytes, deadline_ms).ok());
  CHECK(bytes == "welcome");
  received = other_end.Receive(take());
  CHECK(received.bytes == "hello");

  give("?");
  CHECK(socket->Receive(&bytes, deadline_ms).ToString() == "unavailable: a byte has no meaning");
}

}  // namespace
}  // namespace nowcalls::net
