#include "web/http_server.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/address.h"
#include "support/poll_until.h"
#include "support/tcp.h"
#include "web/host_names.h"
#include "web/http_door.h"

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
  // `source`: the address from which it comes; empty: 127.0.0.1.
  explicit Reader(HttpServer* of, const std::string& source = "")
      : server(of), fd(testing::ConnectTo(of->address().ToString(), source)) {
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
  constexpr size_t kBytes = 16 << 20;  // More than the buffers of the sockets take.
  constexpr size_t kPiece = 4 << 10;
  // Long enough to begin the answer with sanitizers, too.
  const auto server = ServerOf(1000, std::string(kBytes, 'x'));
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
  constexpr size_t kBytes = HttpServer::kAddressAnswerBytesMax;
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

// A server of which a test decides when the handler answers. It has the probes /healthz and /readyz
// and the short path /metrics; /stream is an endless stream, /pieces an answer in pieces.
class Staged {
 public:
  explicit Staged(HttpServer::Options options = {}) {
    if (options.listen.host.empty()) options.listen = {"127.0.0.1", 0};
    options.exchange_ms_max = 60'000;
    options.probe_paths = {"/healthz", "/readyz"};
    options.short_paths = {"/metrics"};
    options.probe = [](const Request& request) { return Response{.body = "probe" + request.path}; };
    auto started =
        HttpServer::Start(options, [this](const Request& request) { return Answer(request); });
    REQUIRE(started.ok());
    server_ = *std::move(started);
  }
  ~Staged() { Release(); }
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;

  HttpServer* server() { return server_.get(); }
  // Until Release a request for /held is not answered.
  bool holds() const { return holds_; }
  void Release() { released_ = true; }
  int pieces() const { return pieces_; }

  // What a new connection is answered; empty: it is turned away.
  std::string Get(const std::string& path, const std::string& host = "localhost") {
    Reader reader(server());
    reader.Send("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
    bool open = true;
    testing::PollUntil(testing::kPatienceMs, [&] { return !(open = reader.Receive()); });
    REQUIRE_FALSE(open);
    return reader.received;
  }
  // Connections that have sent this.
  std::vector<std::unique_ptr<Reader>> Readers(size_t count, const std::string& bytes) {
    std::vector<std::unique_ptr<Reader>> readers;
    for (size_t i = 0; i < count; ++i) {
      readers.push_back(std::make_unique<Reader>(server()));
      readers.back()->Send(bytes);
    }
    return readers;
  }

  static constexpr int kPieces = 1'000;
  static constexpr size_t kPieceBytes = 64 << 10;

 private:
  Response Answer(const Request& request) {
    if (request.path == "/held") {
      holds_ = true;
      testing::PollUntil(testing::kPatienceMs, [this] { return released_.load(); });
    }
    if (request.path == "/stream") {
      return {.body = "begun", .stream = [says = false]() mutable {
                return std::string((says = !says) ? "" : "event");
              }};
    }
    if (request.path == "/pieces") {
      return {.stream = [this] { return NextPiece(); }, .stream_ends = true, .held_bytes = 1'000};
    }
    if (request.path == "/keeps") {  // For ever, but for what its reader takes.
      return {.stream = [] { return std::string(kPieceBytes, 'x'); },
              .stream_ends = true,
              .held_bytes = HttpServer::kAddressAnswerBytesMax - kPieceBytes};
    }
    if (request.path == "/too-large") {
      return {.stream = [] { return std::string(); },
              .stream_ends = true,
              .held_bytes = HttpServer::kAddressAnswerBytesMax + 1};
    }
    if (request.path == "/large") {
      return {.stream = [] { return std::string(); },
              .stream_ends = true,
              .held_bytes = HttpServer::kAddressAnswerBytesMax};
    }
    return {.body = "answer"};
  }
  std::string NextPiece() {
    return pieces_ == kPieces ? "" : (++pieces_, std::string(kPieceBytes, 'x'));
  }

  std::atomic<bool> holds_ = false;
  std::atomic<bool> released_ = false;
  std::atomic<int> pieces_ = 0;
  std::unique_ptr<HttpServer> server_;  // Ends first.
};

TEST_CASE("a probe is answered while another answer is being made") {
  Staged staged;
  Reader held(staged.server());
  held.Send("GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n");
  REQUIRE(testing::PollUntil(testing::kPatienceMs, [&] { return staged.holds(); }));
  for (int i = 0; i < 100; ++i) CHECK(staged.Get("/healthz").ends_with("\r\n\r\nprobe/healthz"));
  CHECK(staged.Get("/readyz?verbose").ends_with("\r\n\r\nprobe/readyz"));
  CHECK(held.received.empty());
  staged.Release();
  CHECK(held.ReceiveUntil([&] { return held.received.ends_with("answer"); }));
}

TEST_CASE("readers of streams leave room for probes and scrapes of their own address") {
  Staged staged;
  const auto most = BoundsOf(GuestKind::kOther).of_one_address;
  auto readers = staged.Readers(most, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
  for (const auto& reader : readers) {
    CHECK(
        reader->ReceiveUntil([&] { return reader->received.find("begun") != std::string::npos; }));
  }
  CHECK(staged.Get("/x").empty());
  CHECK(staged.Get("/healthz").ends_with("probe/healthz"));
  CHECK(staged.Get("/metrics").ends_with("answer"));
  readers.clear();
  CHECK(testing::PollUntil(testing::kPatienceMs, [&] {
    staged.server()->WakeStreams();
    return staged.Get("/x").ends_with("answer");
  }));
}

TEST_CASE("streams that take all room there is leave probes and scrapes theirs") {
  Staged staged;
  std::vector<std::unique_ptr<Reader>> readers;
  const GuestBounds bounds = BoundsOf(GuestKind::kOther);
  for (unsigned i = 0; i < bounds.all; ++i) {
    const std::string source = "127.0.1." + std::to_string(1 + i / bounds.of_one_address);
    readers.push_back(std::make_unique<Reader>(staged.server(), source));
    readers.back()->Send("GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK(readers.back()->ReceiveUntil([&] { return !readers.back()->received.empty(); }));
  }
  CHECK(staged.Get("/x").empty());
  CHECK(staged.Get("/healthz").ends_with("probe/healthz"));
  CHECK(staged.Get("/metrics").ends_with("answer"));
}

TEST_CASE("the kinds of connections have as many together as the ledger leaves to HTTP") {
  CHECK(HttpServer::kConnectionsMax == 256);
}

TEST_CASE("connections that say nothing, or not all, give way to those that ask") {
  for (const char* said : {"", "GET /heal", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n",
                           "GET /metrics HTTP/1.1\r\nHost: localhost\r\n"}) {
    CAPTURE(said);
    Staged staged;
    const auto readers = staged.Readers(500, said);
    CHECK(staged.Get("/healthz").ends_with("probe/healthz"));
    CHECK(staged.Get("/metrics").ends_with("answer"));
    CHECK(staged.Get("/x").ends_with("answer"));
  }
}

// Descriptors of this process, which is client and server.
size_t OpenFiles() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

TEST_CASE("500 connections that are closed behind half a request leave no descriptor") {
  Staged staged;
  const size_t before = OpenFiles();
  for (int i = 0; i < 500; ++i) Reader(staged.server()).Send(i % 2 == 0 ? "GET /hea" : "GE");
  CHECK(testing::PollUntil(testing::kPatienceMs, [&] { return OpenFiles() == before; }));
}

TEST_CASE("half a request that stays is closed when its time is over") {
  const auto server = ServerOf(100, "there\n");
  const size_t before = OpenFiles();
  Reader half(server.get());
  half.Send("GE");
  CHECK(testing::PollUntil(testing::kPatienceMs, [&] { return !half.Receive(); }));
  CHECK(testing::PollUntil(testing::kPatienceMs, [&] { return OpenFiles() == before + 1; }));
}

TEST_CASE("a whole request is answered, though its sender has said that no more comes") {
  Staged staged;
  for (const char* path : {"/healthz", "/metrics", "/x"}) {
    CAPTURE(path);
    Reader reader(staged.server());
    CHECK(staged.Get("/x").ends_with("answer"));  // The door has let both in.
    const std::string request = "GET " + std::string(path) + " HTTP/1.0\r\n\r\n";
    send(reader.fd, request.data(), request.size(), MSG_MORE);  // In one segment with the end.
    shutdown(reader.fd, SHUT_WR);
    CHECK(reader.ReceiveUntil([&] { return reader.received.starts_with("HTTP/1.1 200 "); }));
  }
}

TEST_CASE(
    "who comes while no more files may be open is refused or waits, and then all are served") {
  Staged staged;
  const net::SocketAddress at = *net::Resolve(staged.server()->address());
  std::vector<int> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(socket(AF_INET, SOCK_STREAM, 0));
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  // None at all, and then as many as the refusals take turns with.
  for (const rlim_t allowed : {rlim_t{0}, static_cast<rlim_t>(clients.back() + 1)}) {
    const rlimit none{allowed, before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    for (int i = 0; i < 4; ++i, clients.pop_back()) {
      CHECK(connect(clients.back(), at.get(), at.size) == 0);
      close(clients.back());
    }
    REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(staged.Get("/healthz").ends_with("probe/healthz"));
    CHECK(staged.Get("/x").ends_with("answer"));
  }
}

TEST_CASE("probes and scrapes do not keep their connection, and others do") {
  Staged staged;
  for (const char* path : {"/healthz", "/metrics", "/x"}) {
    CAPTURE(path);
    Reader reader(staged.server());
    reader.Send("GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK(
        reader.ReceiveUntil([&] { return reader.received.find("\r\n\r\n") != std::string::npos; }));
    const bool closes = reader.received.find("\r\nConnection: close\r\n") != std::string::npos;
    CHECK(closes == (std::string(path) != "/x"));
  }
}

TEST_CASE("a large answer is made piece by piece, as its reader takes it") {
  Staged staged;
  Reader slow(staged.server());
  slow.Send("GET /pieces HTTP/1.1\r\nHost: localhost\r\n\r\n");
  REQUIRE(slow.ReceiveUntil([&] { return !slow.received.empty(); }));
  // What the sockets' buffers take is made, and no more. Others are served meanwhile.
  for (int i = 0; i < 20; ++i) CHECK(staged.Get("/x").ends_with("answer"));
  CHECK(staged.pieces() < Staged::kPieces / 2);
  CHECK(slow.ReceiveUntil([&] { return slow.received.ends_with("\r\n0\r\n\r\n"); }));
  CHECK(staged.pieces() == Staged::kPieces);
  CHECK(slow.received.size() > Staged::kPieces * Staged::kPieceBytes);
}

TEST_CASE("an address that takes no answers leaves other addresses room for theirs") {
  Staged staged;
  const auto ask = [&](const std::string& source) {
    auto reader = std::make_unique<Reader>(staged.server(), source);
    reader->Send("GET /keeps HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK(reader->ReceiveUntil([&] { return !reader->received.empty(); }));
    return reader;
  };
  const auto status = [](const Reader& reader) { return reader.received.substr(9, 3); };
  std::vector<std::unique_ptr<Reader>> readers;
  for (int i = 1; i <= 2; ++i) {
    const std::string address = "127.0.1." + std::to_string(i);
    readers.push_back(ask(address));
    CHECK(status(*readers.back()) == "200");
    CHECK(status(*ask(address)) == "503");
  }
  // Two halves are all there is.
  CHECK(status(*ask("127.0.1.3")) == "503");
  CHECK(staged.Get("/x").ends_with("answer"));
}

TEST_CASE("what an answer keeps while it is taken counts before its first piece is made") {
  Staged staged;
  Reader slow(staged.server());
  slow.Send("GET /pieces HTTP/1.1\r\nHost: localhost\r\n\r\n");
  REQUIRE(slow.ReceiveUntil([&] { return !slow.received.empty(); }));
  CHECK(staged.Get("/large").starts_with("HTTP/1.1 503 "));
  CHECK(slow.ReceiveUntil([&] { return slow.received.ends_with("\r\n0\r\n\r\n"); }));
  CHECK(testing::PollUntil(testing::kPatienceMs,
                           [&] { return staged.Get("/large").starts_with("HTTP/1.1 200 "); }));
}

TEST_CASE("a single answer beyond the bound is refused, also when it is alone") {
  Staged staged;
  const std::string refused = staged.Get("/too-large");
  CHECK(refused.starts_with("HTTP/1.1 503 "));
  CHECK(refused.ends_with("bytes: ask for less\n"));
}

TEST_CASE("the first bytes of a request tell what it asks for, as soon as they can") {
  const HttpDoor::Paths paths{{"/healthz", "/readyz"}, {"/metrics"}};
  const auto kind = [&](std::string_view head) { return HttpDoor::KindOf(head, paths); };
  for (const char* undecided : {"", "G", "HEAD", "GET ", "GET /", "GET /health", "GET /healthz"}) {
    CAPTURE(undecided);
    CHECK(kind(undecided) == GuestKind::kUndecided);
  }
  for (const char* probe :
       {"GET /healthz ", "HEAD /readyz HTTP/1.1", "GET /healthz?x", "GET /readyz\r"}) {
    CAPTURE(probe);
    CHECK(kind(probe) == GuestKind::kProbe);
  }
  CHECK(kind("GET /metrics?limit=7 HTTP/1.1") == GuestKind::kShort);
  for (const char* other : {"GET /a", "GET /healthzz", "GET /metrics/", "GET  /healthz ",
                            "GET http://h/healthz ", "VERYLONGMETHOD"}) {
    CAPTURE(other);
    CHECK(kind(other) == GuestKind::kOther);
  }
}

TEST_CASE("a server that others reach refuses a rebound name, and knows the operator's names") {
  Staged staged({.listen = {"0.0.0.0", 0}, .hosts = {"Calls.internal"}});
  const auto status = [&](const std::string& host) { return staged.Get("/x", host).substr(9, 3); };
  CHECK(status("rebound.evil.example") == "421");
  CHECK(status("rebound.evil.example:80") == "421");
  for (const char* host : {"localhost:1", "127.0.0.1", "10.1.2.3:8080", "[fe80::1]:80",
                           "calls.internal", "CALLS.INTERNAL:443"}) {
    CAPTURE(host);
    CHECK(status(host) == "200");
  }
  CHECK(staged.Get("/metrics", "rebound.evil.example").starts_with("HTTP/1.1 421 "));
}

TEST_CASE("probes are answered under any name, also behind another request") {
  Staged staged;
  for (const char* path : {"/healthz", "/readyz?verbose"}) {
    CHECK(staged.Get(path, "nowcalls.shop.svc").starts_with("HTTP/1.1 200 "));
  }
  Reader reader(staged.server());
  reader.Send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(reader.ReceiveUntil([&] { return reader.received.ends_with("answer"); }));
  reader.received.clear();
  reader.Send("GET /healthz HTTP/1.1\r\nHost: nowcalls.shop.svc\r\n\r\n");
  CHECK(reader.ReceiveUntil([&] { return reader.received.starts_with("HTTP/1.1 200 "); }));
}

TEST_CASE("the log names the first host that is refused, and no further one") {
  std::vector<std::string> lines;
  const auto log = [&](bool problem, const std::string& line) {
    CHECK(problem);
    lines.push_back(line);
  };
  {
    Staged staged({.listen = {"127.0.0.1", 0}, .log = log});
    for (const char* host : {"localhost", "calls.example:80", "other.example"}) {
      staged.Get("/metrics", host);
    }
  }
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find("'calls.example:80'") != std::string::npos);
  CHECK(lines[0].find("--http-hosts") != std::string::npos);
}

TEST_CASE("a scrape under a refused name does not keep its connection") {
  Staged staged;
  Reader reader(staged.server());
  reader.Send("GET /metrics HTTP/1.1\r\nHost: rebound.evil.example\r\n\r\n");
  CHECK(reader.ReceiveUntil([&] { return reader.received.starts_with("HTTP/1.1 421 "); }));
  CHECK(reader.received.find("\r\nConnection: close\r\n") != std::string::npos);
}

TEST_CASE("a server on loopback answers under its own addresses and the operator's names alone") {
  const HostNames names({"127.0.0.1", 0}, {{"127.0.0.1", 80}}, {"proxy"});
  for (const char* own : {"localhost", "127.0.0.1", "::1", "proxy"}) CHECK(names.Has(own));
  for (const char* other :
       {"evil.example", "10.1.2.3", "127.0.0.2", "", "localhost.evil.example"}) {
    CAPTURE(other);
    CHECK_FALSE(names.Has(other));
  }
  CHECK(names.Refusal().find("http-hosts") != std::string::npos);
}

TEST_CASE("a name with several addresses is served at each, at one port") {
  Staged staged({.listen = {"localhost", 0}});
  const auto resolved = net::ResolveAll({"localhost", 0});
  REQUIRE(resolved.ok());
  const std::vector<HostPort>& addresses = staged.server()->addresses();
  CHECK(addresses.size() <= resolved->size());
  for (const HostPort& address : addresses) {
    CAPTURE(address.ToString());
    CHECK(address.port == addresses.front().port);
    const net::SocketAddress at = *net::Resolve(address);
    const int fd = socket(at.bytes.ss_family, SOCK_STREAM, 0);
    CHECK(connect(fd, at.get(), at.size) == 0);
    close(fd);
  }
}

}  // namespace
}  // namespace nowcalls::web
