// Bytes between two ends of TLS, and what does not belong there.
#include "net/tls.h"

#include <doctest/doctest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "net/socket.h"
#include "net/tls_channel.h"
#include "net/tls_handles.h"
#include "support/poll_until.h"
#include "support/tcp.h"
#include "unit/net/tls_ends.h"

namespace nowcalls::net {
namespace {

using testing::kPatienceMs;

TlsEnds ShakenEnds(TlsFiles* files, TlsVersion version = TlsVersion::k13) {
  TlsServerFiles server = files->ServerFiles(files->ca.Issue(TlsFiles::Server()));
  server.version = version;
  TlsEnds ends = MakeEnds(server, files->ClientFiles());
  ends.ShakeHands();
  REQUIRE_FALSE(ends.server.channel->shakes_hands());
  return ends;
}

std::string Bytes(size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes += static_cast<char>(i * 7 + i / 251);
  return bytes;
}

// A client of OpenSSL's own, to do what ours never does.
struct RawClient {
  SslContext context{SSL_CTX_new(TLS_client_method())};
  SslConnection ssl;

  explicit RawClient(int version) {
    SSL_CTX_set_max_proto_version(context.get(), version);
    ssl.reset(SSL_new(context.get()));
    SSL_set_connect_state(ssl.get());
    SSL_set_bio(ssl.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  }
  std::string Out() const {
    std::string bytes(BIO_ctrl_pending(SSL_get_wbio(ssl.get())), '\0');
    if (!bytes.empty()) {
      BIO_read(SSL_get_wbio(ssl.get()), bytes.data(), static_cast<int>(bytes.size()));
    }
    return bytes;
  }
  void In(std::string_view bytes) const {
    BIO_write(SSL_get_rbio(ssl.get()), bytes.data(), static_cast<int>(bytes.size()));
  }
  void ShakeHands(TlsEnd* server) const {
    for (int i = 0; i < 10 && !server->failed; ++i) {
      SSL_do_handshake(ssl.get());
      server->Take(Out());
      In(std::exchange(server->wire, {}));
    }
  }
};

TlsEnd ServerEnd(TlsFiles* files, TlsVersion version = TlsVersion::k13) {
  TlsServerFiles server = files->ServerFiles(files->ca.Issue(TlsFiles::Server()));
  server.version = version;
  const auto loaded = TlsServer::Load(server);
  REQUIRE(loaded.ok());
  return {.channel = (*loaded)->MakeChannel()};
}

TEST_CASE("bytes pass TLS in both directions, in pieces of any size") {
  TlsFiles files;
  const TlsServerFiles server = files.ServerFiles(files.ca.Issue(TlsFiles::Server()));
  const TlsClientFiles client = files.ClientFiles();
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{5}, size_t{1000}, SIZE_MAX}) {
    CAPTURE(piece);
    TlsEnds ends = MakeEnds(server, client);
    ends.ShakeHands(piece);
    const std::string question = Bytes(20'000);
    const std::string answer = Bytes(40'000);
    ends.client.Say(question);
    ends.server.Say(answer);
    ends.Pump(piece);
    CHECK((ends.server.got == question));
    CHECK((ends.client.got == answer));
    CHECK_FALSE(ends.server.failed);
  }
}

TEST_CASE("a record gives the same bytes wherever it is split") {
  TlsFiles files;
  TlsEnds ends = ShakenEnds(&files);
  for (size_t at = 0; at <= 62; ++at) {
    CAPTURE(at);
    ends.client.Say("a request of forty bytes, more or less..");
    ends.server.Say("an answer of forty bytes, more or less..");
    const std::string question = std::exchange(ends.client.wire, {});
    const std::string answer = std::exchange(ends.server.wire, {});
    REQUIRE(question.size() == 62);
    ends.server.Take(question.substr(0, at));
    ends.server.Take(question.substr(at));
    ends.client.Take(answer.substr(0, at));
    ends.client.Take(answer.substr(at));
    CHECK(std::exchange(ends.server.got, {}) == "a request of forty bytes, more or less..");
    CHECK(std::exchange(ends.client.got, {}) == "an answer of forty bytes, more or less..");
  }
}

TEST_CASE("the answers of a turn are one record, up to 16 KiB") {
  TlsFiles files;
  TlsEnds ends = ShakenEnds(&files);
  constexpr size_t kAround = 22;  // Of a record of TLS 1.3.
  ends.server.Say(Bytes(16 * 1024));
  CHECK(ends.server.wire.size() == 16 * 1024 + kAround);
  ends.server.wire.clear();
  TlsEnds others = ShakenEnds(&files);
  others.server.Say(Bytes(16 * 1024 + 1));
  CHECK(others.server.wire.size() == 16 * 1024 + 1 + 2 * kAround);
  others.server.wire.clear();
  others.server.Say("");
  CHECK(others.server.wire.empty());
}

TEST_CASE("bytes that are sent during the handshake leave when it is done") {
  TlsFiles files;
  TlsEnds ends =
      MakeEnds(files.ServerFiles(files.ca.Issue(TlsFiles::Server())), files.ClientFiles());
  ends.client.Say("hel");
  ends.client.Say("lo");
  ends.server.Say("welcome");
  CHECK(ends.server.wire.empty());
  ends.ShakeHands();
  CHECK(ends.server.got == "hello");
  CHECK(ends.client.got == "welcome");
}

TEST_CASE("a close is told, and nothing follows it") {
  TlsFiles files;
  TlsEnds ends = ShakenEnds(&files);
  ends.client.Say("last");
  ends.client.wire += ends.client.channel->Close();
  CHECK(ends.client.wire.size() == 26 + 24);
  ends.Pump();
  CHECK(ends.server.got == "last");
  CHECK_FALSE(ends.server.failed);
  ends.server.Say("answer");  // Its end still reads.
  ends.Pump();
  CHECK(ends.client.got == "answer");
  ends.server.Take("whatever comes now");
  CHECK_FALSE(ends.server.failed);
  CHECK(ends.server.got == "last");
}

TEST_CASE("bytes that are no TLS, or were changed, fail a channel") {
  TlsFiles files;
  SUBCASE("before the handshake") {
    using namespace std::string_view_literals;  // NOLINT(google-build-using-namespace)
    for (const std::string_view bytes :
         {"\x94\x00\x07\xa5hello"sv, "GET / HTTP/1.1\r\n\r\n"sv, "\x16\x03\x01\xff\xff\x01"sv,
          "\x15\x03\x03\x00\x02\x02("sv, "PUT x"sv, "CONNECT a:1 HTTP/1.1\r\n"sv}) {
      CAPTURE(bytes);
      TlsEnd server = ServerEnd(&files);
      server.Take(bytes);
      CHECK(server.failed);
      if (bytes.front() != '\x15') CHECK(server.channel->error() == "it does not speak TLS");
      const auto again = server.channel->Receive("more");
      CHECK(again.failed);
      CHECK(again.reply.empty());
    }
    TlsEnds ends =
        MakeEnds(files.ServerFiles(files.ca.Issue(TlsFiles::Server())), files.ClientFiles());
    ends.client.Take("");
    ends.client.Take("\x94\x01\x00\xc0\xc0\x93\x02\xa7goodbye"sv);
    CHECK(ends.client.channel->error() == "it does not speak TLS");
  }
  SUBCASE("after it") {
    TlsEnds ends = ShakenEnds(&files);
    ends.client.Say("hello");
    ends.client.wire[10] = static_cast<char>(ends.client.wire[10] ^ 1);
    ends.server.Take(ends.client.wire);
    CHECK(ends.server.failed);
    CHECK(ends.server.got.empty());
    CHECK(ends.server.channel->error() == "a record was changed on its way");
    CHECK_FALSE(ends.server.wire.empty());  // An alert.
    CHECK(ends.server.channel->Close().empty());
  }
}

TEST_CASE("a handshake is bounded") {
  TlsFiles files;
  TlsEnd server = ServerEnd(&files);
  // Records without an end of the first message.
  std::string record = std::string("\x16\x03\x01\x40\x00", 5);
  server.Take(record + std::string("\x01\x01\xff\x00", 4) + std::string(16384 - 4, 'x'));
  for (int i = 0; i < 20 && !server.failed; ++i) server.Take(record + std::string(16384, 'x'));
  CHECK(server.failed);
}

TEST_CASE("TLS 1.2 is spoken by choice, with modern suites alone") {
  TlsFiles files;
  TlsEnd strict = ServerEnd(&files);
  RawClient(TLS1_2_VERSION).ShakeHands(&strict);
  CHECK(strict.channel->error() ==
        "it speaks other versions of TLS: 1.3 is spoken, and 1.2 where both ends allow it");
  TlsEnd lax = ServerEnd(&files, TlsVersion::k12);
  const RawClient client(TLS1_2_VERSION);
  client.ShakeHands(&lax);
  CHECK(lax.channel->error() == "");
  CHECK_FALSE(lax.channel->shakes_hands());
  CHECK(SSL_version(client.ssl.get()) == TLS1_2_VERSION);
  TlsEnd old = ServerEnd(&files, TlsVersion::k12);
  const RawClient old_client(TLS1_2_VERSION);
  SSL_set_cipher_list(old_client.ssl.get(), "ECDHE-ECDSA-AES128-SHA256");
  old_client.ShakeHands(&old);
  CHECK(old.channel->error() == "no cipher suite is in common");
}

TEST_CASE("a key exchange that costs the server dear is not spoken") {
  TlsFiles files;
  for (const char* groups : {"X25519", "P-256", "P-384", "ffdhe8192"}) {
    CAPTURE(groups);
    TlsEnd server = ServerEnd(&files);
    const RawClient client(TLS1_3_VERSION);
    REQUIRE(SSL_set1_groups_list(client.ssl.get(), groups) == 1);
    client.ShakeHands(&server);
    CHECK(server.failed == (std::string_view(groups) == "ffdhe8192"));
  }
}

TEST_CASE("a session is neither kept nor resumed") {
  TlsFiles files;
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsEnd server = ServerEnd(&files, TlsVersion::k12);
    const RawClient client(version);
    client.ShakeHands(&server);
    server.Say("welcome");
    client.In(std::exchange(server.wire, {}));
    char bytes[16];
    CHECK(SSL_read(client.ssl.get(), bytes, sizeof(bytes)) == 7);
    CHECK(SSL_SESSION_is_resumable(SSL_get0_session(client.ssl.get())) == 0);
  }
}

TEST_CASE("a client that asks for a renegotiation, or for keys without end, is refused") {
  TlsFiles files;
  SUBCASE("renegotiation") {
    TlsEnd server = ServerEnd(&files, TlsVersion::k12);
    const RawClient client(TLS1_2_VERSION);
    client.ShakeHands(&server);
    REQUIRE(SSL_renegotiate(client.ssl.get()) == 1);
    SSL_do_handshake(client.ssl.get());
    server.Take(client.Out());
    CHECK(server.channel->error() == "it asks for a renegotiation, which is refused");
  }
  SUBCASE("keys") {
    TlsEnd server = ServerEnd(&files);
    const RawClient client(TLS1_3_VERSION);
    client.ShakeHands(&server);
    const auto change = [&](int times) {
      for (int i = 0; i < times; ++i) {
        REQUIRE(SSL_key_update(client.ssl.get(), SSL_KEY_UPDATE_REQUESTED) == 1);
        REQUIRE(SSL_do_handshake(client.ssl.get()) == 1);
      }
      return client.Out();
    };
    server.Take(change(2));
    CHECK_FALSE(server.failed);
    server.Say("still here");
    client.In(std::exchange(server.wire, {}));
    char bytes[16];
    CHECK(SSL_read(client.ssl.get(), bytes, sizeof(bytes)) == 10);
    server.Take(change(9));
    CHECK(server.channel->error() == "it changes its keys without need");
  }
}

TEST_CASE("the application protocol is ours, or is not said") {
  TlsFiles files;
  const auto says = [&](std::string_view offered) {
    TlsEnd server = ServerEnd(&files);
    const RawClient client(TLS1_3_VERSION);
    if (!offered.empty()) {
      SSL_set_alpn_protos(client.ssl.get(), reinterpret_cast<const unsigned char*>(offered.data()),
                          static_cast<unsigned>(offered.size()));
    }
    client.ShakeHands(&server);
    return server.channel->error();
  };
  CHECK(says("") == "");
  CHECK(says("\x02h2\x0anowcalls/1") == "");
  CHECK(says("\x02h2\x08http/1.1") ==
        "it asks for another application protocol (ALPN) than nowcalls/1");
}

TEST_CASE("the name that a client asks for is ignored") {
  TlsFiles files;
  TlsEnd server = ServerEnd(&files);
  const RawClient client(TLS1_3_VERSION);
  SSL_set_tlsext_host_name(client.ssl.get(), "another.example");
  client.ShakeHands(&server);
  CHECK(server.channel->error() == "");
}

TEST_CASE("a server's channel is TLS or plain by its first byte") {
  TlsFiles files;
  const auto tls = TlsServer::Load(files.ServerFiles(files.ca.Issue(TlsFiles::Server())));
  const auto client = TlsClient::Load(files.ClientFiles());
  REQUIRE(tls.ok());
  REQUIRE(client.ok());
  TlsEnds ends;
  ends.client.channel = (*client)->MakeChannel("db.example");
  SUBCASE("TLS, a byte at a time") {
    ends.server.channel = MakeChannelByFirstByte(*tls, /*plain=*/false);
    CHECK(ends.server.channel->shakes_hands());
    ends.server.Take("");
    ends.ShakeHands(1);
    CHECK_FALSE(ends.server.channel->shakes_hands());
    CHECK(ends.server.channel->encrypted());
    ends.client.Say("hello");
    ends.Pump(1);
    CHECK(ends.server.got == "hello");
    CHECK_FALSE(ends.server.channel->Close().empty());
  }
  SUBCASE("plain") {
    ends.server.channel = MakeChannelByFirstByte(*tls, /*plain=*/true);
    ends.server.Take("\x94plain");
    CHECK_FALSE(ends.server.channel->shakes_hands());
    CHECK_FALSE(ends.server.channel->encrypted());
    CHECK(ends.server.got == "\x94plain");
    CHECK(ends.server.channel->Send("answer") == "answer");
    CHECK(ends.server.channel->Close().empty());
    CHECK(ends.server.channel->peer().empty());
  }
  SUBCASE("plain where that is refused") {
    ends.server.channel = MakeChannelByFirstByte(*tls, /*plain=*/false);
    CHECK(ends.server.channel->Close().empty());
    ends.server.Take("\x94plain");
    CHECK(ends.server.failed);
    CHECK(ends.server.channel->error() ==
          "it does not speak TLS, which is required of its address");
    CHECK(ends.server.channel->Receive("more").failed);
    CHECK(ends.server.channel->Close().empty());
  }
  SUBCASE("TLS where there is none") {
    ends.server.channel = MakeChannelByFirstByte(nullptr, /*plain=*/true);
    ends.ShakeHands();
    CHECK(ends.server.failed);
    CHECK(ends.server.channel->error() == "it speaks TLS, and this server has no certificate");
  }
}

TEST_CASE("a channel keeps the context that it was made of") {
  TlsFiles files;
  auto tls = TlsServer::Load(files.ServerFiles(files.ca.Issue(TlsFiles::Server())));
  const auto client = TlsClient::Load(files.ClientFiles());
  REQUIRE(tls.ok());
  TlsEnds ends;
  ends.server.channel = (*tls)->MakeChannel();
  ends.client.channel = (*client)->MakeChannel("db.example");
  tls->reset();
  ends.ShakeHands();
  CHECK_FALSE(ends.server.channel->shakes_hands());
}

// A server that takes one connection, on a thread of its own.
class OneConnection {
 public:
  explicit OneConnection(std::unique_ptr<Channel> channel)
      : listener_(testing::ListenOnLoopback(&port_)), thread_([this, end = std::move(channel)] {
          const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
          char bytes[4096];
          for (ssize_t size = 0; (size = recv(fd, bytes, sizeof(bytes), 0)) > 0;) {
            const auto received = end->Receive({bytes, static_cast<size_t>(size)});
            Send(fd, received.reply);
            if (!received.bytes.empty()) Send(fd, end->Send(received.bytes));
            if (received.failed) break;
          }
          close(fd);
        }) {}
  ~OneConnection() {
    thread_.join();
    close(listener_);
  }
  OneConnection(const OneConnection&) = delete;
  OneConnection& operator=(const OneConnection&) = delete;

  Endpoint at() const { return Endpoint::Tcp({"127.0.0.1", port_}); }

 private:
  // A byte at a time: a client must read on.
  static void Send(int fd, std::string_view bytes) {
    for (const char byte : bytes) send(fd, &byte, 1, MSG_NOSIGNAL);
  }

  uint16_t port_ = 0;
  const int listener_;
  std::thread thread_;
};

TEST_CASE("a client's socket shakes hands while it connects, and reads on over what is TLS's own") {
  TlsFiles files;
  const auto tls = TlsServer::Load(files.ServerFiles(files.ca.Issue(TlsFiles::Server())));
  const auto client = TlsClient::Load(files.ClientFiles());
  REQUIRE(tls.ok());
  SUBCASE("it is done") {
    const OneConnection server((*tls)->MakeChannel());
    auto socket = Socket::Connect(server.at(), BoottimeMs() + kPatienceMs, getaddrinfo,
                                  (*client)->MakeChannel("db.example"));
    REQUIRE(socket.status().ToString() == "ok");
    CHECK(socket->SendNow("hello").ok());
    std::string bytes;
    CHECK(socket->Receive(&bytes, BoottimeMs() + kPatienceMs).ok());
    CHECK(bytes == "hello");
  }
  SUBCASE("it is not: the certificate is for another host") {
    const OneConnection server((*tls)->MakeChannel());
    const auto socket = Socket::Connect(server.at(), BoottimeMs() + kPatienceMs, getaddrinfo,
                                        (*client)->MakeChannel("127.0.0.1"));
    CHECK(socket.status().ToString() ==
          "failed_precondition: the TLS handshake failed: its certificate is for db.example and "
          "not for "
          "127.0.0.1");
  }
  SUBCASE("it is not: the server closes") {
    const OneConnection server(MakeChannelByFirstByte(nullptr, true));
    const auto socket = Socket::Connect(server.at(), BoottimeMs() + kPatienceMs, getaddrinfo,
                                        (*client)->MakeChannel("db.example"));
    CHECK(socket.status().ToString() ==
          "failed_precondition: the TLS handshake failed: the connection was closed; does the "
          "server speak "
          "TLS?");
  }
  SUBCASE("it is not: the server is silent") {
    uint16_t port = 0;
    const int listener = testing::ListenOnLoopback(&port);
    const auto socket = Socket::Connect(Endpoint::Tcp({"127.0.0.1", port}), BoottimeMs() + 50,
                                        getaddrinfo, (*client)->MakeChannel("db.example"));
    CHECK(socket.status().ToString() ==
          "failed_precondition: the TLS handshake failed: Connection timed out");
    close(listener);
  }
}

}  // namespace
}  // namespace nowcalls::net
