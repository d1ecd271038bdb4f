// HTTPS at the port of HTTP, with certificates made here.
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/certificates.h"
#include "support/tcp.h"
#include "unit/web/http_asking.h"
#include "web/http_server.h"
#include "web/https_certificate.h"

namespace nowcalls::web {
namespace {

using testing::HttpAnswer;
using testing::IssuedCertificate;

IssuedCertificate OfServer(const testing::Authority& authority) {
  return authority.Issue({.common_name = "server", .names = {{'I', "127.0.0.1"}}});
}

// A server that answers with its path, a long stream at /pieces, an endless one at /stream.
class SafeSite {
 public:
  explicit SafeSite(std::function<bool(const net::Peer&)> takes_plain = {}) {
    const IssuedCertificate issued = OfServer(authority_);
    auto started =
        HttpServer::Start({.listen = {"127.0.0.1", 0},
                           .tls = Https{issued.certificate, issued.key},
                           .takes_plain = std::move(takes_plain),
                           .probe_paths = {"/healthz"},
                           .probe = [](const Request&) { return Response{.body = "plain probe"}; },
                           .short_paths = {"/metrics"}},
                          Answer);
    REQUIRE(started.status().ToString() == "ok");
    server_ = *std::move(started);
  }

  HttpServer* server() { return server_.get(); }
  std::string Url(const std::string& scheme, const std::string& path) const {
    return scheme + "://" + server_->address().ToString() + path;
  }
  HttpAnswer Get(const std::string& path) const { return GetOf(path, authority_.certificate()); }
  HttpAnswer GetOf(const std::string& path, const std::string& ca) const {
    return testing::Ask({.url = Url("https", path), .ca = ca});
  }
  HttpAnswer Read(const std::string& path, std::atomic<bool>* begun) const {
    return testing::Ask(
        {.url = Url("https", path), .ca = authority_.certificate(), .begun = begun});
  }
  void End() { server_.reset(); }
  HttpAnswer GetPlain(const std::string& path, const std::string& source = "") const {
    return testing::Ask({.url = Url("http", path), .source = source});
  }

 private:
  static Response Answer(const Request& request) {
    if (request.path == "/pieces") {
      return {.stream =
                  [left = 100]() mutable {
                    return left-- > 0 ? std::string(64 << 10, 'x') : std::string();
                  },
              .stream_ends = true};
    }
    if (request.path == "/stream") return {.body = "begun", .stream = [] { return ""; }};
    if (request.path == "/late") return {.status = 401, .body = "late", .delay_ms = 700};
    return {.body = request.path + (request.peer.encrypted ? " encrypted" : " plain")};
  }

  const testing::Authority authority_{"company"};
  std::unique_ptr<HttpServer> server_;
};

TEST_CASE("one port speaks HTTPS and HTTP, and the handler knows which") {
  SafeSite site;
  CHECK(site.Get("/x").body == "/x encrypted");
  CHECK(site.GetPlain("/x").body == "/x plain");
  CHECK(site.Get("/pieces").body.size() == 100 * (64 << 10));
  // Who knows another authority does not believe it.
  const testing::Authority other("other");
  const HttpAnswer refused = site.GetOf("/x", other.certificate());
  CHECK(refused.status == 0);
  CHECK_FALSE(refused.error.empty());
}

TEST_CASE("a delayed answer comes late by HTTPS, too, and holds nobody up") {
  SafeSite site;
  HttpAnswer late;
  std::thread waiting([&] { late = site.Get("/late"); });
  CHECK(site.Get("/x").status == 200);
  waiting.join();
  CHECK(late.status == 401);
  CHECK(late.body == "late");
  CHECK(late.took_ms >= 700);
}

TEST_CASE("plain HTTP is refused in words where it must be TLS, but not to probes") {
  SafeSite site([](const net::Peer& peer) { return peer.host != "127.0.0.2"; });
  CHECK(site.GetPlain("/x").status == 200);
  const HttpAnswer refused = site.GetPlain("/x", "127.0.0.2");
  CHECK(refused.status == 400);
  CHECK(refused.body ==
        "HTTP without TLS is not answered to 127.0.0.2 (--plain): ask by https://\n");
  CHECK(site.GetPlain("/metrics", "127.0.0.2").status == 400);
  CHECK(site.GetPlain("/healthz", "127.0.0.2").body == "plain probe");
}

TEST_CASE("another certificate is shown to new connections, and a broken one changes nothing") {
  SafeSite site;
  HttpAnswer stream;
  std::atomic<bool> begun = false;
  std::thread reading([&] { stream = site.Read("/stream", &begun); });
  CHECK(testing::PollUntil(testing::kPatienceMs, [&] { return begun.load(); }));
  const testing::Authority next("next");
  const IssuedCertificate issued = OfServer(next);
  const Status mixed = site.server()->SetCertificate({issued.certificate, OfServer(next).key});
  CHECK(mixed.code() == StatusCode::kInvalidArgument);
  CHECK(mixed.message().starts_with("HTTPS cannot use the certificate with its key: "));
  CHECK_FALSE(site.server()->SetCertificate({}).ok());
  CHECK_FALSE(site.server()->SetCertificate({"no PEM", issued.key}).ok());
  CHECK(site.Get("/x").status == 200);
  REQUIRE(site.server()->SetCertificate({issued.certificate, issued.key}).ok());
  CHECK(site.Get("/x").status == 0);
  CHECK(site.GetOf("/x", next.certificate()).body == "/x encrypted");
  site.End();
  reading.join();
  CHECK(stream.body == "begun");
}

TEST_CASE("connections of HTTPS that say nothing give way to those that ask") {
  SafeSite site;
  std::vector<int> silent;
  for (int i = 0; i < 300; ++i) {
    silent.push_back(testing::ConnectTo(site.server()->address().ToString()));
    const char begin[] = {0x16, 0x03, 0x01};
    send(silent.back(), begin, sizeof(begin), MSG_NOSIGNAL);
  }
  CHECK(site.Get("/x").status == 200);
  CHECK(site.Get("/metrics").status == 200);
  CHECK(site.Get("/healthz").status == 200);
  CHECK(site.GetPlain("/healthz").status == 200);
  for (const int fd : silent) close(fd);
}

TEST_CASE("readers of HTTPS streams leave room for probes and scrapes of their own address") {
  SafeSite site;
  std::vector<std::thread> readers;
  std::vector<std::unique_ptr<std::atomic<bool>>> begun;
  const auto most = BoundsOf(GuestKind::kOther).of_one_address;
  for (unsigned i = 0; i < most; ++i) {
    begun.push_back(std::make_unique<std::atomic<bool>>(false));
    readers.emplace_back([&site, flag = begun.back().get()] { site.Read("/stream", flag); });
    // One by one: handshakes have less room than streams.
    CHECK(testing::PollUntil(testing::kPatienceMs, [&] { return begun.back()->load(); }));
  }
  CHECK(site.Get("/x").status == 0);
  for (const char* path : {"/healthz", "/metrics"}) {
    const HttpAnswer answer = site.Get(path);
    CHECK(answer.status == 200);
    CHECK(answer.head.find("\r\nconnection: close\r\n") != std::string::npos);
  }
  site.End();
  for (std::thread& reader : readers) reader.join();
}

// A server that asks clients for certificates, and answers with the name that one proves.
class AskingSite {
 public:
  explicit AskingSite(net::ClientCertificates clients) : clients_(clients) {
    auto started = HttpServer::Start(
        {.listen = {"127.0.0.1", 0}, .tls = Asking(believed_)}, [](const Request& request) {
          return Response{.body = "<" + request.peer.certificate + ">"};
        });
    REQUIRE(started.status().ToString() == "ok");
    server_ = *std::move(started);
  }

  Https Asking(const testing::Authority& believed) const {
    const IssuedCertificate issued = OfServer(company_);
    return {.certificate = issued.certificate,
            .key = issued.key,
            .client_ca = believed.certificate(),
            .clients = clients_};
  }
  HttpAnswer GetAs(const IssuedCertificate& client) const {
    return testing::Ask({.url = "https://" + server_->address().ToString() + "/x",
                         .ca = company_.certificate(),
                         .own = client});
  }
  const testing::Authority& believed() const { return believed_; }
  HttpServer* server() { return server_.get(); }

 private:
  const net::ClientCertificates clients_;
  const testing::Authority company_{"company"};
  const testing::Authority believed_{"clients"};
  std::unique_ptr<HttpServer> server_;
};

TEST_CASE("a certificate that an HTTPS client shows proves its URI, else its DNS, else its name") {
  const AskingSite site(net::ClientCertificates::kOptional);
  const auto named = [&](const testing::CertificateSpec& spec) {
    return site.GetAs(site.believed().Issue(spec)).body;
  };
  CHECK(named({.common_name = "cn", .names = {{'D', "a.example"}, {'U', "spiffe://a/b"}}}) ==
        "<spiffe://a/b>");
  CHECK(named({.common_name = "cn", .names = {{'D', "a.example"}}}) == "<a.example>");
  CHECK(named({.common_name = "cn", .usage = "clientAuth"}) == "<cn>");
  CHECK(named({.common_name = "cn", .more_common_name = "other"}) == "<>");
  const testing::Authority middle("middle", &site.believed());
  CHECK(site.GetAs(middle.Issue({.common_name = "below"})).body == "<below>");
  CHECK(site.GetAs({}).body == "<>");
}

TEST_CASE("an HTTPS client whose certificate is not believed gets no answer") {
  for (const auto clients :
       {net::ClientCertificates::kOptional, net::ClientCertificates::kRequired}) {
    const AskingSite site(clients);
    CHECK(site.GetAs(testing::Authority("stranger").Issue({.common_name = "cn"})).status == 0);
    const auto refused = [&](const testing::CertificateSpec& spec) {
      return site.GetAs(site.believed().Issue(spec)).status == 0;
    };
    CHECK(refused({.common_name = "cn", .ends_s = -1}));
    CHECK(refused({.common_name = "cn", .usage = "serverAuth"}));
    CHECK_FALSE(refused({.common_name = "cn"}));
  }
}

TEST_CASE("where HTTPS requires a client certificate, none and a nameless one get no answer") {
  AskingSite site(net::ClientCertificates::kRequired);
  CHECK(site.GetAs({}).status == 0);
  const testing::CertificateSpec nameless{.common_name = "one", .more_common_name = "two"};
  CHECK(site.GetAs(site.believed().Issue(nameless)).status == 0);
  const IssuedCertificate client = site.believed().Issue({.common_name = "cn"});
  CHECK(site.GetAs(client).body == "<cn>");
  // Other CAs count for new connections.
  REQUIRE(site.server()->SetCertificate(site.Asking(testing::Authority("next"))).ok());
  CHECK(site.GetAs(client).status == 0);
}

TEST_CASE("HTTPS that asks for client certificates needs CAs that it can read") {
  const AskingSite site(net::ClientCertificates::kOptional);
  Https https = site.Asking(site.believed());
  for (const char* cas : {"", "no PEM"}) {
    https.client_ca = cas;
    CHECK(HttpsCertificate::Load(https).status().code() == StatusCode::kInvalidArgument);
  }
}

TEST_CASE("a server that began without TLS takes no certificate") {
  const auto server = HttpServer::Start({.listen = {"127.0.0.1", 0}},
                                        [](const Request&) { return Response{.body = "x"}; });
  REQUIRE(server.ok());
  CHECK((*server)->SetCertificate({}).code() == StatusCode::kFailedPrecondition);
  const auto broken = HttpServer::Start({.listen = {"127.0.0.1", 0}, .tls = Https{"", ""}},
                                        [](const Request&) { return Response{}; });
  CHECK(broken.status().code() == StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace nowcalls::web
