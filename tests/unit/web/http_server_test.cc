#include "web/http_server.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>

#include "support/poll_until.h"
#include "support/tcp.h"

namespace nowcalls::web {
namespace {

TEST_CASE("a Host header names a host, or none when it is no HOST, HOST:PORT or [ADDRESS]:PORT") {
  CHECK(HostOf("localhost") == "localhost");
  CHECK(HostOf("LocalHost:18731") == "localhost");
  CHECK(HostOf("127.0.0.1:") == "127.0.0.1");
  CHECK(HostOf("[::1]") == "::1");
  CHECK(HostOf("[::1]:80") == "::1");
  for (const char* none :
       {"", ":80", "localhost:evil.example", "[::1", "[::1]x", "[::1]:x", "[]"}) {
    CAPTURE(none);
    CHECK(HostOf(none).empty());
  }
  CHECK(HostOf("localhost.evil.example") == "localhost.evil.example");
}

// A server that answers with `body`, and a connection to it.
struct Exchange {
  explicit Exchange(int64_t exchange_ms_max, std::string body = "there\n") {
    auto started =
        HttpServer::Start({.listen = {"127.0.0.1", 0}, .exchange_ms_max = exchange_ms_max},
                          [body](const Request& /*request*/) { return Response{.body = body}; });
    REQUIRE(started.ok());
    server = *std::move(started);
    fd = testing::ConnectTo(server->address().ToString());
    REQUIRE(fd >= 0);
  }
  ~Exchange() { close(fd); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void Send(std::string_view bytes) const {
    send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  // Takes what has come, up to `max` bytes. False: the server closed the connection.
  bool Receive(size_t max = 4096) {
    std::string bytes(max, '\0');
    const ssize_t size = recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size > 0) received.append(bytes, 0, static_cast<size_t>(size));
    return size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR));
  }

  std::unique_ptr<HttpServer> server;
  int fd = -1;
  std::string received;
};

constexpr std::string_view kBegin = "GET /x HTTP/1.1\r\nHost: localhost\r\nX: ";

TEST_CASE("a request whose headers come a byte at a time is cut off") {
  Exchange slow(100);
  slow.Send(kBegin);
  CHECK(testing::PollUntil(testing::kPatienceMs, [&] {
    slow.Send("x");
    slow.server->WakeStreams();
    return !slow.Receive();
  }));
  CHECK(slow.received.empty());
}

TEST_CASE("a slow request within its time is answered") {
  Exchange slow(60'000);
  slow.Send(kBegin);
  for (int i = 0; i < 50; ++i) {
    slow.Send("x");
    slow.server->WakeStreams();
    REQUIRE(slow.Receive());
  }
  slow.Send("\r\n\r\n");
  CHECK(testing::PollUntil(testing::kPatienceMs, [&] {
    slow.server->WakeStreams();
    REQUIRE(slow.Receive());
    return slow.received.ends_with("there\n");
  }));
}

TEST_CASE("an answer that is read piece by piece is cut off") {
  constexpr size_t kBytes = 64 << 20;  // More than the buffers of the sockets take.
  constexpr size_t kPiece = 64 << 10;
  Exchange slow(100, std::string(kBytes, 'x'));
  slow.Send(kBegin);
  slow.Send("\r\n\r\n");
  CHECK(testing::PollUntil(testing::kPatienceMs, [&] {
    slow.server->WakeStreams();
    return !slow.Receive(kPiece);
  }));
  CHECK_FALSE(slow.received.empty());
  CHECK(slow.received.size() < kBytes);
}

}  // namespace
}  // namespace nowcalls::web
