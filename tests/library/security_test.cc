// The client library with TLS and secrets.
#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "library/clients.h"
#include "net/tls.h"
#include "support/certificates.h"
#include "support/fake_server.h"
#include "support/poll_until.h"
#include "support/process.h"
#include "support/server_process.h"
#include "support/temp_dir.h"

namespace nowcalls::testing {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): of tests.

constexpr char kSecret[] = "nc-0123456789abcdef";

ClientOptions SecretOf(const std::string& address) {
  ClientOptions options;
  options.addresses = {address};
  options.client_id = "me";
  options.timeout = Milliseconds(kPatienceMs);
  options.fallback = Fallback::kPass;
  options.secret = kSecret;
  return options;
}

// Answers identify, hello and acquires. `denies`: identify with PERMISSION.
auto Answering(bool denies) {
  return [denies](FakeServer::Peer* peer) {
    wire::Envelope request;
    while (peer->Take(&request)) {
      peer->Answer([&](wire::OutputBuffer* out) {
        const uint32_t id = request.msgid;
        if (request.method == wire::Method::kIdentify && denies) {
          wire::EncodeError(id, {wire::ErrorCode::kPermission, "this secret is nobody's"}, out);
        } else if (request.method == wire::Method::kIdentify) {
          wire::EncodeIdentify(id, {.name = "checkout", .role = "client", .proof = "secret"}, out);
        } else if (request.method == wire::Method::kHello) {
          wire::EncodeHello(id, {"1.2.3", 12, 3, 0}, out);
        } else {
          wire::EncodeError(id, {wire::ErrorCode::kPermission, "not this flow"}, out);
        }
      });
    }
  };
}

}  // namespace

TEST_CASE("a wrong option of TLS is told by Start") {
  const TempDir dir;
  const auto error = [](TlsOptions tls) {
    ClientOptions options;
    options.tls = std::move(tls);
    const Status status = Client::Start(options).status();
    CHECK(status.code() == StatusCode::kInvalidArgument);
    return status.message();
  };
  CHECK(error({.ca = "ca.pem"}) == "tls.ca is set, but tls.on is not");
  const std::string missing = error({.on = true, .ca = dir.Sub("none.pem")});
  CHECK(missing.starts_with("tls: "));
  CHECK(Contains(missing, dir.Sub("none.pem")));
  WriteStringToFile(dir.Sub("ca.pem"), "no certificate");
  CHECK(Contains(error({.on = true, .ca = dir.Sub("ca.pem")}), dir.Sub("ca.pem")));
  ClientOptions options;
  options.secret = std::string(1000, 'x');
  CHECK(Client::Start(options).status().message() == "secret has more than 256 bytes");
}

TEST_CASE("a client is known to a server behind TLS by its secret") {
  const TempDir dir;
  const Authority ca("Test CA");
  WriteStringToFile(dir.Sub("ca.pem"), ca.certificate());
  const CertificateFiles own = WriteCertificate(
      dir.path(), "server", ca.Issue({.common_name = "server", .names = {{'I', "127.0.0.1"}}}));
  auto tls = net::TlsServer::Load({.certificate = own.certificate, .key = own.key});
  REQUIRE(tls.ok());
  const FakeServer server(Answering(/*denies=*/false),
                          [&] { return net::MakeChannelByFirstByte(*tls, /*plain=*/false); });
  ClientOptions options = SecretOf(server.address());
  options.tls = {.on = true, .ca = dir.Sub("ca.pem")};
  std::mutex mutex;
  std::string lines;
  options.log = [&](LogLevel, std::string_view line) {
    const std::lock_guard lock(mutex);
    lines += std::string(line) + "\n";
  };
  const auto client = StartClient(options);
  REQUIRE(client->WaitConnected(1min).ToString() == "ok");
  // What the principal may not have is no case for a fallback.
  CHECK(client->Acquire(kFlow).outcome == Outcome::kPermissionDenied);
  CHECK(client->stats().connected);
  // The client's loop logs, and the answer may have come to this thread before.
  CHECK(PollUntil(kPatienceMs, [&] {
    const std::lock_guard lock(mutex);
    return Contains(lines, " as checkout, session 12");
  }));
  const std::lock_guard lock(mutex);
  CHECK_FALSE(Contains(lines, kSecret));
}

TEST_CASE("a secret that is wrong lets no call pass, and WaitConnected tells it") {
  const FakeServer server(Answering(/*denies=*/true));
  const auto client = StartClient(SecretOf(server.address()));
  const Acquired acquired = client->Acquire(kFlow);
  CHECK(acquired.outcome == Outcome::kPermissionDenied);
  CHECK(Contains(acquired.message, "PERMISSION: this secret is nobody's"));
  CHECK(client->Request(kFlow).outcome == Outcome::kPermissionDenied);
  CHECK(client->WaitConnected(10ms).code() == StatusCode::kPermissionDenied);
}

TEST_CASE("a client whose certificate the server refuses gets no call past it by a fallback") {
  const TempDir dir;
  const Authority ca("Test CA");
  WriteStringToFile(dir.Sub("ca.pem"), ca.certificate());
  const CertificateFiles own = WriteCertificate(
      dir.path(), "server", ca.Issue({.common_name = "server", .names = {{'I', "127.0.0.1"}}}));
  auto tls = net::TlsServer::Load({.certificate = own.certificate,
                                   .key = own.key,
                                   .client_ca = dir.Sub("ca.pem"),
                                   .clients = net::ClientCertificates::kRequired});
  REQUIRE(tls.ok());
  const FakeServer server(Answering(/*denies=*/false),
                          [&] { return net::MakeChannelByFirstByte(*tls, /*plain=*/false); });
  ClientOptions options = SecretOf(server.address());
  options.secret.clear();
  options.tls = {.on = true, .ca = dir.Sub("ca.pem")};
  Outcome outcome = Outcome::kPermissionDenied;
  SUBCASE("it shows none") {}
  SUBCASE("it shows one of another CA") {
    const CertificateFiles foreign =
        WriteCertificate(dir.path(), "foreign", Authority("Other CA").Issue({.common_name = "x"}));
    options.tls.certificate = foreign.certificate;
    options.tls.key = foreign.key;
  }
  SUBCASE("but it is the client that does not believe the server") {
    WriteStringToFile(dir.Sub("other.pem"), Authority("Other CA").certificate());
    options.tls.ca = dir.Sub("other.pem");
    outcome = Outcome::kOk;  // As a server that is not reached: kPass.
  }
  const auto client = StartClient(options);
  const Acquired acquired = client->Acquire(kFlow);
  CHECK_MESSAGE(acquired.outcome == outcome, acquired.message);
  const bool denied = outcome == Outcome::kPermissionDenied;
  CHECK((client->WaitConnected(10ms).code() == StatusCode::kPermissionDenied) == denied);
}

TEST_CASE("a client that speaks TLS says so of a server that does not") {
  const TempDir dir;
  WriteStringToFile(dir.Sub("ca.pem"), Authority("Test CA").certificate());
  TestServer server(RuleJson(7, 1));
  ClientOptions options = SecretOf(server.address());
  options.tls = {.on = true, .ca = dir.Sub("ca.pem")};
  options.fallback = Fallback::kFail;
  const auto client = StartClient(options);
  const Acquired acquired = client->Acquire(kFlow, {.timeout = 500ms});
  CHECK(acquired.outcome == Outcome::kUnavailable);
  CHECK_MESSAGE(Contains(acquired.message, "the TLS handshake failed: "), acquired.message);
}

}  // namespace nowcalls::testing
