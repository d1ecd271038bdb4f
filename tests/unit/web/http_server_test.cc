#include "web/http_server.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <functional>
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

// One that answers with `body`, and under /small with "small".
std::unique_ptr<HttpServer> ServerOf(int64_t exchange_ms_max, const std::string& body) {
  auto started =
      HttpServer::Start({.listen = {"127.0.0.1", 0}, .exchange_ms_max = exchange_ms_max},
                        [body](const Request& request) {
                          return Response{.body = request.path == "/small" ? "small" : body};
                        });
  REQUIRE(started.ok());
  return *std::move(started);
}

constexpr std::string_view kBegin = "GET /x HTTP/1.1\r\nHost: localhost\r\nX: ";
constexpr std::string_view kEnd = "\r\n\r\n";

// A connection to a server.
struct Reader {
  explicit Reader(HttpServer* of) : server(of), fd(testing::ConnectTo(of->address().ToString())) {
    REQUIRE(fd >= 0);
  }
  ~Reader() { close(fd); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  void Send(std::string_view bytes) const {
    send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  // Takes what has come, up to `max` bytes. False: the server closed the connection.
  bool Receive(size_t max = 1 << 20) {
    std::string bytes(max, '\0');
    const ssize_t size = recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size > 0) received.append(bytes, 0, static_cast<size_t>(size));
    return size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR));
  }
  // Until `done` holds of what was received, or the server closed the connection.
  bool ReceiveUntil(const std::function<bool()>& done) {
    bool open = true;
    testing::PollUntil(testing::kPatienceMs, [&] {
      server->WakeStreams();
      open = Receive();
      return !open || done();
    });
    return done();
  }
  void Ask() const {
    Send(kBegin);
    Send(kEnd);
  }

  HttpServer* const server;
  const int fd;
  std::string received;
};

TEST_CASE("a request whose headers come a byte at a time is cut off") {
  const auto server = ServerOf(100, "there\n");
  Reader slow(server.get());
  slow.Send(kBegin);
  CHECK(testing::PollUntil(testing::kPatienceMs, [&] {
    slow.Send("x");
    server->WakeStreams();
    return !slow.Receive();
  }));
  CHECK(slow.received.empty());
}

TEST_CASE("a slow request within its time is answered") {
  const auto server = ServerOf(60'000, "there\n");
  Reader slow(server.get());
  slow.Send(kBegin);
  for (int i = 0; i < 50; ++i) {
    slow.Send("x");
    server->WakeStreams();
    REQUIRE(slow.Receive());
  }
  slow.Send(kEnd);
  CHECK(slow.ReceiveUntil([&] { return slow.received.ends_with("there\n"); }));
}

TEST_CASE("an answer that is read piece by piece is cut off") {
  constexpr size_t kBytes = 64 << 20;  // More than the buffers of the sockets take.
  constexpr size_t kPiece = 64 << 10;
  const auto server = ServerOf(100, std::string(kBytes, 'x'));
  Reader slow(server.get());
  slow.Ask();
  CHECK(testing::PollUntil(testing::kPatienceMs, [&] {
    server->WakeStreams();
    return !slow.Receive(kPiece);
  }));
  CHECK_FALSE(slow.received.empty());
  CHECK(slow.received.size() < kBytes);
}

TEST_CASE("answers that nobody takes are bounded, and who asks for more is told to wait") {
  constexpr size_t kBytes = HttpServer::kAnswerBytesMax / 2 + 1;
  const auto server = ServerOf(60'000, std::string(kBytes, 'x'));
  const auto has_all = [](const Reader& reader) { return reader.received.size() > kBytes; };
  Reader first(server.get());
  first.Ask();
  REQUIRE(first.ReceiveUntil([&] { return !first.received.empty(); }));
  Reader second(server.get());
  second.Ask();
  CHECK(second.ReceiveUntil([&] { return second.received.ends_with("or for less\n"); }));
  CHECK(second.received.starts_with("HTTP/1.1 503 "));
  CHECK(second.received.find("\r\nRetry-After: 1\r\n") != std::string::npos);
  second.Send("GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(second.ReceiveUntil([&] { return second.received.ends_with("small"); }));
  CHECK(first.ReceiveUntil([&] { return has_all(first); }));
  // The server learns a moment later that all of it went.
  CHECK(testing::PollUntil(testing::kPatienceMs, [&] {
    Reader third(server.get());
    third.Ask();
    return third.ReceiveUntil([&] {
      return has_all(third) || third.received.starts_with("HTTP/1.1 503 ");
    }) && has_all(third);
  }));
}

}  // namespace
}  // namespace nowcalls::web
