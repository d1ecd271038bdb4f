// TLS on the token port: beside plain connections, with client certificates, through a change of
// the files, and under a crowd of handshakes.
#include "net/tls.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/host_port.h"
#include "integration/calls.h"
#include "net/socket.h"
#include "support/certificates.h"
#include "support/machine.h"
#include "support/poll_until.h"
#include "support/rpc_client.h"
#include "support/server_process.h"
#include "support/tcp.h"
#include "unit/net/tls_ends.h"

namespace nowcalls::testing {
namespace {

using net::TlsFiles;

// A client of MessagePack-RPC over TLS.
class TlsCaller {
 public:
  TlsCaller(const std::string& address, const net::TlsClientFiles& files,
            const std::string& host = "db.example") {
    const auto tls = net::TlsClient::Load(files);
    REQUIRE(tls.status().ToString() == "ok");
    auto socket =
        net::Socket::Connect(net::Endpoint::Tcp(*ParseHostPort(address)),
                             BoottimeMs() + kPatienceMs, getaddrinfo, (*tls)->MakeChannel(host));
    error_ = socket.status().message();
    if (socket.ok()) socket_ = std::make_unique<net::Socket>(*std::move(socket));
  }

  void Ask(std::string_view method, const Json& params = Json::array()) {
    CHECK(socket_->Send(EncodeRequest(++msgid_, method, params), BoottimeMs() + kPatienceMs).ok());
  }
  // The result of the answer; null, and error(): there is none.
  Json Answer() {
    std::string bytes;
    for (Json answer; answer.is_null(); answer = FromMessagePack(bytes)) {
      const Status got = socket_->Receive(&bytes, BoottimeMs() + kPatienceMs);
      if (!got.ok()) {
        error_ = got.message();
        return nullptr;
      }
    }
    return FromMessagePack(bytes).at(3);
  }
  Json Call(std::string_view method, const Json& params = Json::array()) {
    if (socket_ == nullptr) return nullptr;
    Ask(method, params);
    return Answer();
  }
  bool Works() { return !Call("info").is_null(); }
  const std::string& error() const { return error_; }

 private:
  std::unique_ptr<net::Socket> socket_;
  std::string error_;
  uint32_t msgid_ = 0;
};

ServerOptions With(const net::TlsServerFiles& tls, const std::vector<std::string>& more = {}) {
  ServerOptions options;
  options.arguments = {"--tls-cert", tls.certificate, "--tls-key", tls.key};
  options.arguments.insert(options.arguments.end(), more.begin(), more.end());
  return options;
}

TEST_CASE("one port takes TLS and plain connections, told by their first byte") {
  TlsFiles files;
  TestServer server(nullptr, With(files.ServerFiles(files.ca.Issue(TlsFiles::Server()))));
  CHECK(server.server().LogHas("TLS with the certificate of db.example, until 20"));
  CHECK(server.server().LogHas("serving on " + server.address() + " (TLS)"));
  TlsCaller caller(server.address(), files.ClientFiles());
  REQUIRE(caller.Works());
  RpcClient plain = server.Connect();
  const Json info = ResultOf(&plain, "info");
  CHECK(info.at("tls").at("handshakes") == 1);
  CHECK(info.at("tls").at("handshakes_failed") == 0);
  CHECK(info.at("tls").at("certificate_ends_at").get<int64_t>() > 1'700'000'000);
  // Many answers, in several records.
  for (int i = 0; i < 50; ++i) CHECK(caller.Works());
  // One that is not for this client.
  TlsCaller wrong(server.address(), files.ClientFiles(), "127.0.0.1");
  CHECK(wrong.error() ==
        "the TLS handshake failed: its certificate is for db.example and not for "
        "127.0.0.1");
  CHECK(server.server().LogHas(" failed: it refuses the server's certificate"));
  CHECK(PollUntil(kPatienceMs,
                  [&] { return ResultOf(&plain, "info").at("tls").at("handshakes_failed") == 1; }));
}

TEST_CASE("plain connections can be refused, and TLS is where there is none") {
  TlsFiles files;
  SUBCASE("plain") {
    TestServer server(
        nullptr, With(files.ServerFiles(files.ca.Issue(TlsFiles::Server())), {"--plain", "off"}));
    RpcClient plain = server.Connect();
    CHECK(plain.Call("ping").kind == Reply::Kind::kClosed);
    CHECK(
        server.server().LogHas(" failed: it does not speak TLS, which is required of its address"));
    CHECK(TlsCaller(server.address(), files.ClientFiles()).Works());
  }
  SUBCASE("TLS") {
    TestServer server;
    TlsCaller caller(server.address(), files.ClientFiles());
    CHECK(caller.error() ==
          "the TLS handshake failed: the connection was closed; does the server speak TLS?");
    CHECK(server.server().LogHas(" failed: it speaks TLS, and this server has no certificate"));
  }
}

TEST_CASE("a server asks for client certificates") {
  TlsFiles files;
  const std::string ca = files.CaFile(files.ca);
  TestServer server(nullptr, With(files.ServerFiles(files.ca.Issue(TlsFiles::Server())),
                                  {"--tls-client-ca", ca, "--tls-client", "required"}));
  CHECK(TlsCaller(server.address(), files.ClientFiles(files.ca.Issue(TlsFiles::Client()))).Works());
  TlsCaller without(server.address(), files.ClientFiles());
  CHECK_FALSE(without.Works());
  CHECK(without.error() == "the server asks for a client certificate, and none was shown");
  CHECK(server.server().LogHas(" failed: it shows no client certificate, and one is required"));
}

TEST_CASE("a start with files that cannot be used ends with 64, and names them") {
  TlsFiles files;
  const TempDir dir;
  const auto one = files.ServerFiles(files.ca.Issue(TlsFiles::Server()));
  const auto two = files.ServerFiles(files.ca.Issue(TlsFiles::Server()));
  ServerProcess server(dir.path(), With({.certificate = one.certificate, .key = two.key}));
  server.StartWithoutWaiting();
  CHECK(server.process().Wait() == 64);
  CHECK(server.log().find("TLS: the key of " + two.key + " is not that of the first certificate") !=
        std::string::npos);
}

TEST_CASE("another certificate is for new connections, and no call is lost") {
  TlsFiles files;
  const auto own = files.ServerFiles(files.ca.Issue(TlsFiles::Server()));
  TestServer server(nullptr, With(own));
  ServerProcess& process = server.server();
  TlsCaller first(server.address(), files.ClientFiles());
  REQUIRE(first.Works());
  // Calls without a pause, over connections that come and go.
  std::atomic<bool> stop = false;
  std::atomic<int> lost = 0;
  std::atomic<int> calls = 0;
  const net::TlsClientFiles client = files.ClientFiles();
  std::thread load([&] {
    while (!stop) {
      const auto tls = net::TlsClient::Load(client);
      auto socket = net::Socket::Connect(net::Endpoint::Tcp(*ParseHostPort(server.address())),
                                         BoottimeMs() + kPatienceMs, getaddrinfo,
                                         (*tls)->MakeChannel("db.example"));
      for (int i = 0; socket.ok() && i < 20; ++i) {
        std::string bytes;
        const bool done =
            socket->Send(EncodeRequest(1, "ping", Json::array()), BoottimeMs() + kPatienceMs)
                .ok() &&
            socket->Receive(&bytes, BoottimeMs() + kPatienceMs).ok();
        ++(done ? calls : lost);
      }
      if (!socket.ok()) ++lost;
    }
  });
  // 1. A key alone is no pair: the certificate of before stays.
  net::TlsServerFiles ignored = own;
  auto spec = TlsFiles::Server();
  spec.names = {{'D', "other.example"}, {'D', "db.example"}};
  spec.ends_s = 9 * 12 * 3600;  // four days and a half: no second decides
  const IssuedCertificate other = files.ca.Issue(spec);
  WriteStringToFile(own.key, other.key);
  CHECK(process.LogHas("TLS: the key of " + own.key + " is not that of the first certificate of " +
                       own.certificate));
  CHECK(process.LogHas("the certificate of before stays in use (db.example, until 20"));
  CHECK(TlsCaller(server.address(), client).Works());
  // 2. The certificate follows, and ends soon.
  WriteStringToFile(own.certificate, other.certificate);
  CHECK(process.LogHas("loaded " + own.certificate +
                       ": TLS with the certificate of other.example, db.example, until 20"));
  CHECK(process.LogHas("the TLS certificate of other.example, db.example in " + own.certificate +
                       " ends on 20"));
  CHECK(process.LogHas(", in 4 days: put another in its place, which is read at once"));
  CHECK(TlsCaller(server.address(), client, "other.example").Works());
  CHECK(first.Works());
  // 3. An operator who asks gets an answer.
  process.process().Signal(SIGHUP);
  CHECK(PollUntil(kPatienceMs, [&] {
    const std::string log = process.log();
    const size_t one = log.find("loaded " + own.certificate);
    return log.find("loaded " + own.certificate, one + 1) != std::string::npos;
  }));
  stop = true;
  load.join();
  CHECK(lost == 0);
  CHECK(calls > 0);
}

TEST_CASE("a connection that does not shake hands is closed") {
  TlsFiles files;
  Machine machine;
  ServerOptions options =
      With(files.ServerFiles(files.ca.Issue(TlsFiles::Server())), {"--plain", "off"});
  options.environment = machine.environment();
  TestServer server(nullptr, options);
  const int silent = ConnectTo(server.address());
  REQUIRE(WaitFor(silent, POLLOUT, BoottimeMs() + kPatienceMs));
  TlsCaller served(server.address(), files.ClientFiles());
  REQUIRE(served.Works());
  machine.control().boot_offset_ms += 10'001;
  CHECK(served.Works());  // It wakes the loop.
  CHECK(server.server().LogHas(" has done no TLS handshake after 10000 ms; closing it"));
  CHECK(WaitFor(silent, POLLIN, BoottimeMs() + kPatienceMs));
  char byte = 0;
  CHECK(recv(silent, &byte, 1, 0) == 0);
  close(silent);
  CHECK(served.Works());
}

TEST_CASE("of too many connections that do not shake hands the oldest gives way") {
  TlsFiles files;
  TestServer server(nullptr, With(files.ServerFiles(files.ca.Issue(TlsFiles::Server())),
                                  {"--plain", "off", "--unidentified-max", "2"}));
  TlsCaller served(server.address(), files.ClientFiles());
  REQUIRE(served.Works());
  std::vector<int> silent;
  for (int i = 0; i < 3; ++i) {
    silent.push_back(ConnectTo(server.address()));
    REQUIRE(WaitFor(silent.back(), POLLOUT, BoottimeMs() + kPatienceMs));
    CHECK(served.Works());  // It was accepted.
  }
  CHECK(WaitFor(silent[0], POLLIN, BoottimeMs() + kPatienceMs));
  char byte = 0;
  CHECK(recv(silent[0], &byte, 1, 0) == 0);
  CHECK(recv(silent[2], &byte, 1, MSG_DONTWAIT) < 0);
  CHECK(served.Works());
  for (const int fd : silent) close(fd);
}

// Sends all its bytes at once when told, without waiting for an answer.
struct Shaking {
  int fd = -1;
  net::TlsEnd end{};

  void Send() {
    const std::string bytes = std::exchange(end.wire, {});
    CHECK(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
  }
  void Receive() {
    REQUIRE(WaitFor(fd, POLLIN, BoottimeMs() + kPatienceMs));
    char bytes[16 * 1024];
    const ssize_t size = recv(fd, bytes, sizeof(bytes), 0);
    REQUIRE(size > 0);
    end.Take({bytes, static_cast<size_t>(size)});
  }
};

TEST_CASE("a crowd that shakes hands does not hold up who is served") {
  constexpr int kCrowd = 200;
  constexpr int kOfATurn = 4;
  TlsFiles files;
  TestServer server(nullptr, With(files.ServerFiles(files.ca.Issue(TlsFiles::Server()))));
  const auto tls = net::TlsClient::Load(files.ClientFiles());
  REQUIRE(tls.ok());
  TlsCaller served(server.address(), files.ClientFiles());
  REQUIRE(served.Works());
  // 1. All are one step from the end of their handshake.
  std::vector<Shaking> crowd(kCrowd);
  for (Shaking& one : crowd) {
    one.fd = ConnectTo(server.address());
    REQUIRE(WaitFor(one.fd, POLLOUT, BoottimeMs() + kPatienceMs));
    one.end.channel = (*tls)->MakeChannel("db.example");
    one.end.Take("");
    one.Send();
  }
  for (Shaking& one : crowd) {
    while (one.end.channel->shakes_hands()) one.Receive();
  }
  // 2. Their last bytes and a request arrive together.
  server.server().process().Signal(SIGSTOP);
  for (Shaking& one : crowd) one.Send();
  served.Ask("info");
  server.server().process().Signal(SIGCONT);
  const auto done = served.Answer().at("tls").at("handshakes").get<int>();
  CHECK(done - 1 <= 2 * kOfATurn);
  // 3. All of them get their turn.
  CHECK(PollUntil(kPatienceMs,
                  [&] { return served.Call("info").at("tls").at("handshakes") == 1 + kCrowd; }));
  for (const Shaking& one : crowd) close(one.fd);
}

}  // namespace
}  // namespace nowcalls::testing
