// Clients of a server that speaks TLS, or not.
#include "client/dial.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "client/blocking_client.h"
#include "net/address.h"
#include "net/tls.h"
#include "support/certificates.h"
#include "support/fake_server.h"
#include "support/other_host.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace nowcalls::client {
namespace {

using net::ClientCertificates;
using testing::Authority;
using testing::Contains;
using testing::FakeServer;

constexpr int64_t kDialPatienceMs = 30'000;

// Answers pings; the client's name, once it has spoken.
void AnswerPings(FakeServer::Peer* peer) {
  wire::Envelope request;
  while (peer->Take(&request)) {
    peer->Answer([&](wire::OutputBuffer* out) { wire::EncodePing(request.msgid, 77, out); });
  }
}

// The files of a server at 127.0.0.1 and of its clients.
struct Files {
  Files() { testing::WriteStringToFile(ca_file, ca.certificate()); }

  testing::CertificateFiles Issue(const std::string& name, std::string address = "127.0.0.1") {
    return testing::WriteCertificate(
        dir.path(), name,
        ca.Issue({.common_name = name, .names = {{'I', std::move(address)}, {'D', name}}}));
  }
  FakeServer::MakeChannel Serve(const testing::CertificateFiles& own,
                                ClientCertificates clients = ClientCertificates::kOff) const {
    auto tls =
        net::TlsServer::Load({.certificate = own.certificate,
                              .key = own.key,
                              .client_ca = clients == ClientCertificates::kOff ? "" : ca_file,
                              .clients = clients});
    REQUIRE(tls.status().ToString() == "ok");
    return
        [loaded = *std::move(tls)] { return net::MakeChannelByFirstByte(loaded, /*plain=*/false); };
  }

  const testing::TempDir dir;
  const Authority ca{"Test CA"};
  const std::string ca_file = dir.Sub("ca.pem");
};

Result<uint64_t> PingOver(const FakeServer& server, TlsOptions tls) {
  auto client = BlockingClient::Connect({.address = server.address(),
                                         .timeout_ms = kDialPatienceMs,
                                         .security = {.tls = std::move(tls)}});
  if (!client.ok()) return client.status();
  return (*client)->Ping();
}

TEST_CASE("a server is believed by its certificate, and asked through TLS") {
  Files files;
  const auto own = files.Issue("db.example");
  SUBCASE("at its address") {
    const FakeServer server(AnswerPings, files.Serve(own));
    CHECK(*PingOver(server, {.on = true, .ca = files.ca_file}) == 77);
  }
  SUBCASE("by its name") {
    const FakeServer server(AnswerPings, files.Serve(own));
    CHECK(*PingOver(server, {.on = true, .ca = files.ca_file, .server_name = "db.example"}) == 77);
  }
}

TEST_CASE("a server that is not believed is not talked to, and the error says why") {
  Files files;
  TlsOptions tls{.on = true, .ca = files.ca_file};
  std::string why;
  testing::CertificateFiles own = files.Issue("db.example");
  SUBCASE("it is another") {
    own = files.Issue("db.example", "10.0.0.1");
    why = "127.0.0.1";
  }
  SUBCASE("it has another name than is wanted") {
    tls.server_name = "shop.example";
    why = "shop.example";
  }
  SUBCASE("nobody known has signed its certificate") {
    tls.ca = files.dir.Sub("other.pem");
    testing::WriteStringToFile(tls.ca, Authority("Other CA").certificate());
    why = "CA";
  }
  const FakeServer server(AnswerPings, files.Serve(own));
  const Status status = PingOver(server, tls).status();
  CHECK(status.code() == StatusCode::kUnavailable);
  CHECK(status.message().starts_with("cannot talk to " + server.address() +
                                     ": the TLS handshake failed: "));
  CHECK_MESSAGE(Contains(status.message(), why), status.message());
}

TEST_CASE("a client shows its certificate, where the server asks for one") {
  Files files;
  const auto own = files.Issue("db.example");
  const auto checkout = files.Issue("checkout");
  const FakeServer server(AnswerPings, files.Serve(own, ClientCertificates::kRequired));
  TlsOptions tls{.on = true, .ca = files.ca_file};
  SUBCASE("it has one") {
    tls.certificate = checkout.certificate;
    tls.key = checkout.key;
    CHECK(*PingOver(server, tls) == 77);
  }
  // The server's refusal comes behind the handshake of TLS 1.3.
  SUBCASE("it has none") {
    const Status status = PingOver(server, tls).status();
    CHECK(status.code() == StatusCode::kPermissionDenied);
    CHECK_MESSAGE(Contains(status.message(), "client certificate"), status.message());
  }
}

TEST_CASE("a renewed certificate is shown from the next dial on") {
  Files files;
  const auto own = files.Issue("db.example");
  const auto shown = files.Issue("checkout");
  Security security{
      .tls = {.on = true, .ca = files.ca_file, .certificate = shown.certificate, .key = shown.key}};
  testing::WriteStringToFile(shown.certificate, "renewed by half");
  CHECK(ChannelsTo(net::Endpoint::Tcp({"127.0.0.1", 1}), security.tls).status().code() ==
        StatusCode::kInvalidArgument);
  files.Issue("checkout");
  const FakeServer server(AnswerPings, files.Serve(own, ClientCertificates::kRequired));
  CHECK(*PingOver(server, security.tls) == 77);
}

TEST_CASE("a peer that does not speak TLS is told as such") {
  Files files;
  const FakeServer server([](FakeServer::Peer* peer) {
    peer->Send("HTTP/1.1 400 Bad Request\r\n\r\n");
    peer->AwaitClose();
  });
  CHECK(PingOver(server, {.on = true, .ca = files.ca_file}).status().message() ==
        "cannot talk to " + server.address() + ": the TLS handshake failed: it does not speak TLS");
}

TEST_CASE("a plain client of a server that speaks TLS only is told what may be wrong") {
  Files files;
  const FakeServer server(AnswerPings, files.Serve(files.Issue("db.example")));
  CHECK(PingOver(server, {}).status().message() ==
        "no answer from " + server.address() +
            ": the connection was closed before it answered (does it speak TLS only?)");
}

TEST_CASE("a secret travels plainly within this machine") {
  const FakeServer server(AnswerPings);
  const auto socket = Dial(*net::ParseServer(server.address()), {.secret = "s3cret"},
                           BoottimeMs() + kDialPatienceMs);
  CHECK(socket.status().ToString() == "ok");
}

TEST_CASE("a secret does not leave plainly for another host") {
  testing::OtherHost far;
  if (!far.Plug()) return;
  const Result<int> listener = net::Listen({far.our_address(), 0}, 5, [](int) { return true; });
  REQUIRE(listener.ok());
  const auto server = net::Endpoint::Tcp(net::LocalEndOf(*listener));
  Status with = Status::Unavailable("not dialled");
  Status without = with;
  far.Run([&] {
    with = Dial(server, {.secret = "s3cret"}, BoottimeMs() + kDialPatienceMs).status();
    without = Dial(server, {}, BoottimeMs() + kDialPatienceMs).status();
  });
  close(*listener);
  CHECK(without.ToString() == "ok");
  CHECK(with.code() == StatusCode::kInvalidArgument);
  CHECK(with.message().starts_with("the secret needs TLS, or a server on this machine"));
}

}  // namespace
}  // namespace nowcalls::client
