// Which certificates are believed, and what is said of the others.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "net/tls.h"
#include "support/certificates.h"
#include "unit/net/tls_ends.h"

namespace nowcalls::net {
namespace {

using testing::Authority;
using testing::CertificateSpec;

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// What the client says of a server with this certificate; empty: it is believed.
std::string ClientSays(TlsFiles* files, const testing::IssuedCertificate& issued,
                       const std::string& host = "db.example") {
  TlsEnds ends = MakeEnds(files->ServerFiles(issued), files->ClientFiles(), host);
  ends.ShakeHands();
  CHECK(ends.client.failed == ends.client.channel->shakes_hands());
  CHECK(ends.client.failed == !ends.client.channel->error().empty());
  return ends.client.channel->error();
}

// What the server says of a client with this certificate, and the name that it takes it for.
struct Shown {
  std::string error;
  std::string name;
};
Shown ServerSays(TlsFiles* files, const testing::IssuedCertificate& issued,
                 ClientCertificates clients = ClientCertificates::kRequired) {
  TlsServerFiles server = files->ServerFiles(files->ca.Issue(TlsFiles::Server()));
  server.client_ca = files->CaFile(files->ca);
  server.clients = clients;
  TlsEnds ends = MakeEnds(server, files->ClientFiles(issued));
  ends.ShakeHands();
  Shown shown{ends.server.channel->error(), ""};
  if (!ends.server.failed) shown.name = ends.server.channel->peer();
  return shown;
}

TEST_CASE("a good certificate is believed by either side, and its name is known") {
  TlsFiles files;
  TlsServerFiles server = files.ServerFiles(files.ca.Issue(TlsFiles::Server()));
  server.client_ca = files.CaFile(files.ca);
  server.clients = ClientCertificates::kRequired;
  TlsEnds ends = MakeEnds(server, files.ClientFiles(files.ca.Issue(TlsFiles::Client())));
  CHECK(ends.server.channel->shakes_hands());
  ends.ShakeHands();
  CHECK_FALSE(ends.server.channel->shakes_hands());
  CHECK_FALSE(ends.client.channel->shakes_hands());
  CHECK(ends.server.channel->peer() == "spiffe://a/b");
  CHECK(ends.client.channel->peer() == "db.example");
  CHECK(ends.server.channel->encrypted());
  CHECK(ends.server.channel->error().empty());
}

TEST_CASE("a client says what is wrong with the server's certificate") {
  TlsFiles files;
  CertificateSpec spec = TlsFiles::Server();
  SUBCASE("expired") {
    spec.begins_s = -7200;
    spec.ends_s = -3600;
    const std::string said = ClientSays(&files, files.ca.Issue(spec));
    CHECK(Has(said, "its certificate (db.example) has expired since 20"));
    CHECK(said.ends_with(" UTC"));
  }
  SUBCASE("not yet valid") {
    spec.begins_s = 3600;
    const std::string said = ClientSays(&files, files.ca.Issue(spec));
    CHECK(Has(said, "its certificate (db.example) is not yet valid, until 20"));
  }
  SUBCASE("of another CA") {
    const Authority other("Other CA");
    CHECK(ClientSays(&files, other.Issue(spec)) ==
          "its certificate (db.example) is signed by an unknown CA, \"CN=Other CA\": its "
          "certificate is not in the CA file");
  }
  SUBCASE("of a CA of the same name") {
    const Authority other("Test CA");
    const std::string said = ClientSays(&files, other.Issue(spec));
    CHECK(Has(said, "\"CN=Test CA\""));
  }
  SUBCASE("for clients") {
    spec.usage = "clientAuth";
    CHECK(Has(ClientSays(&files, files.ca.Issue(spec)), "(db.example) is not for servers"));
  }
  SUBCASE("for another host") {
    spec.names = {{'D', "a.example"}, {'I', "10.0.0.1"}, {'I', "fd00::1"}, {'U', "x://y"}};
    CHECK(ClientSays(&files, files.ca.Issue(spec)) ==
          "its certificate is for a.example, 10.0.0.1, fd00::1, x://y and not for db.example");
    spec.names.emplace_back('D', "more");
    CHECK(ClientSays(&files, files.ca.Issue(spec), "10.0.0.2") ==
          "its certificate is for a.example, 10.0.0.1, fd00::1, x://y and others and not for "
          "10.0.0.2");
    // A common name is no name of a host.
    spec.common_name = "db.example";
    CHECK_FALSE(ClientSays(&files, files.ca.Issue(spec)).empty());
    spec.names.clear();
    CHECK(ClientSays(&files, files.ca.Issue(spec)) ==
          "its certificate is for CN=db.example and not for db.example");
  }
}

TEST_CASE("a certificate is for a host by any of its names, wildcards of a whole label included") {
  TlsFiles files;
  CertificateSpec spec = TlsFiles::Server();
  spec.names = {{'U', "spiffe://prod/db"}, {'D', "*.db.example"}, {'D', "one.example"},
                {'D', "p*.example"},       {'I', "127.0.0.1"},    {'I', "::1"}};
  const auto issued = files.ca.Issue(spec);
  for (const char* good : {"one.example", "ONE.example", "one.example.", "a.db.example",
                           "127.0.0.1", "::1", "0:0:0:0:0:0:0:1"}) {
    CAPTURE(good);
    CHECK(ClientSays(&files, issued, good).empty());
  }
  for (const char* bad :
       {"two.example", "a.b.db.example", "db.example", "pay.example", "127.0.0.2", "::2"}) {
    CAPTURE(bad);
    CHECK(Has(ClientSays(&files, issued, bad), std::string("and not for ") + bad));
  }
}

TEST_CASE("a server name stands in for the host that is dialled") {
  TlsFiles files;
  TlsClientFiles client = files.ClientFiles();
  client.server_name = "db.example";
  TlsEnds ends =
      MakeEnds(files.ServerFiles(files.ca.Issue(TlsFiles::Server())), client, "127.0.0.1");
  ends.ShakeHands();
  CHECK(ends.client.channel->error().empty());
}

TEST_CASE("a server says what is wrong with a client's certificate") {
  TlsFiles files;
  CertificateSpec spec = TlsFiles::Client();
  SUBCASE("expired") {
    spec.begins_s = -7200;
    spec.ends_s = -3600;
    CHECK(Has(ServerSays(&files, files.ca.Issue(spec)).error,
              "its certificate (spiffe://a/b) has expired since 20"));
  }
  SUBCASE("for servers") {
    spec.usage = "serverAuth";
    CHECK(Has(ServerSays(&files, files.ca.Issue(spec)).error, "is not for clients"));
  }
  SUBCASE("of another CA, also where none need be shown") {
    const Authority other("Other CA");
    for (const auto clients : {ClientCertificates::kRequired, ClientCertificates::kOptional}) {
      CHECK(Has(ServerSays(&files, other.Issue(spec), clients).error, "\"CN=Other CA\""));
    }
  }
  SUBCASE("words of the certificate cannot break a line") {
    const Authority other("Other\nCA \x1b[31m");
    spec.names = {{'U', "a\nb\x1b"}};
    const std::string said = ServerSays(&files, other.Issue(spec)).error;
    CHECK(said.find('\n') == std::string::npos);
    CHECK(said.find('\x1b') == std::string::npos);
  }
}

TEST_CASE("a client is told that its certificate is refused, or asked for") {
  TlsFiles files;
  TlsServerFiles server = files.ServerFiles(files.ca.Issue(TlsFiles::Server()));
  server.client_ca = files.CaFile(files.ca);
  server.clients = ClientCertificates::kRequired;
  SUBCASE("none is shown") {
    TlsEnds ends = MakeEnds(server, files.ClientFiles());
    ends.ShakeHands();
    CHECK(ends.server.channel->error() == "it shows no client certificate, and one is required");
    CHECK(ends.client.channel->error() ==
          "the server asks for a client certificate, and none was shown");
  }
  SUBCASE("one of another CA") {
    const Authority other("Other CA");
    TlsEnds ends = MakeEnds(server, files.ClientFiles(other.Issue(TlsFiles::Client())));
    ends.ShakeHands();
    CHECK(ends.client.channel->error() ==
          "it does not trust the client's certificate, since it does not know the CA that signed "
          "it");
  }
  SUBCASE("it refuses the server's") {
    const Authority other("Other CA");
    TlsEnds ends =
        MakeEnds(files.ServerFiles(other.Issue(TlsFiles::Server())), files.ClientFiles());
    ends.ShakeHands();
    CHECK(Has(ends.server.channel->error(), "it does not trust the server's certificate"));
  }
}

TEST_CASE("client certificates may be off or optional") {
  TlsFiles files;
  TlsServerFiles server = files.ServerFiles(files.ca.Issue(TlsFiles::Server()));
  const TlsClientFiles shows = files.ClientFiles(files.ca.Issue(TlsFiles::Client()));
  const auto name = [&](const TlsClientFiles& client) {
    TlsEnds ends = MakeEnds(server, client);
    ends.ShakeHands();
    CHECK(ends.server.channel->error() == "");
    return std::string(ends.server.channel->peer());
  };
  CHECK(name(shows) == "");  // It is not asked for.
  CHECK(name(files.ClientFiles()) == "");
  server.clients = ClientCertificates::kOptional;
  server.client_ca = files.CaFile(files.ca);
  CHECK(name(shows) == "spiffe://a/b");
  CHECK(name(files.ClientFiles()) == "");
}

TEST_CASE("the name of a client is its first URI, else its first DNS name, else its common name") {
  TlsFiles files;
  const auto name = [&](const CertificateSpec& spec) {
    const Shown required = ServerSays(&files, files.ca.Issue(spec));
    const Shown optional = ServerSays(&files, files.ca.Issue(spec), ClientCertificates::kOptional);
    CHECK(optional.error == "");
    CHECK(optional.name == required.name);
    // Without a name it is nobody, and where one is required it is refused.
    CHECK(required.error.empty() == !required.name.empty());
    if (!required.error.empty()) CHECK(Has(required.error, "has no name of printable"));
    return optional.name;
  };
  const std::string nul("a\0b", 3);
  CHECK(name({.common_name = "Mixed Case"}) == "Mixed Case");
  CHECK(name({.common_name = "cn", .names = {{'D', "B.example"}, {'D', "a"}}}) == "B.example");
  CHECK(name({.common_name = "cn", .names = {{'D', "d"}, {'U', "u:2"}, {'U', "u:1"}}}) == "u:2");
  CHECK(name({.common_name = "cn", .names = {{'I', "10.0.0.1"}}}) == "cn");
  CHECK(name({.common_name = "caf\xc3\xa9"}) == "caf\xc3\xa9");
  CHECK(name({.common_name = nul}) == "");
  CHECK(name({.common_name = "a\nb"}) == "");
  CHECK(name({.common_name = "one", .more_common_name = "two"}) == "");
  // A name that cannot be used does not let the next one count.
  CHECK(name({.common_name = "cn", .names = {{'U', nul}, {'D', "d"}}}) == "");
  CHECK(name({.common_name = "cn", .names = {{'D', nul}}}) == "");
  CHECK(name({.common_name = "cn", .names = {{'U', "\xff"}}}) == "");
  CHECK(name({.common_name = "cn", .names = {{'U', ""}}}) == "");
  CHECK(name({.common_name = "cn", .names = {{'U', std::string(2049, 'u')}}}) == "");
  CHECK(name({.names = {{'U', std::string(2048, 'u')}}}) == std::string(2048, 'u'));
}

TEST_CASE("chains are believed up to a length") {
  TlsFiles files;
  std::vector<std::unique_ptr<Authority>> chain;
  const Authority* last = &files.ca;
  const auto grow = [&](size_t intermediates) {
    while (chain.size() < intermediates) {
      chain.push_back(std::make_unique<Authority>("CA " + std::to_string(chain.size() + 1), last));
      last = chain.back().get();
    }
  };
  grow(9);  // With the client's and the root's it has 11.
  CHECK(ServerSays(&files, last->Issue(TlsFiles::Client())).name == "spiffe://a/b");
  CHECK(ClientSays(&files, last->Issue(TlsFiles::Server())) == "");
  grow(12);
  const std::string said = ServerSays(&files, last->Issue(TlsFiles::Client())).error;
  CHECK(Has(said, "its certificate"));
  CHECK(Has(ClientSays(&files, last->Issue(TlsFiles::Server())), "its certificate"));
  // What no chain needs is not read on.
  grow(400);
  CHECK(ServerSays(&files, last->Issue(TlsFiles::Client())).error ==
        "it shows too long a chain of certificates");
}

TEST_CASE("a CA that another one has signed is believed by itself") {
  TlsFiles files;
  const Authority middle("Middle CA", &files.ca);
  TlsClientFiles client = files.ClientFiles();
  client.ca = files.CaFile(middle);
  TlsEnds ends = MakeEnds(files.ServerFiles(middle.Issue(TlsFiles::Server())), client);
  ends.ShakeHands();
  CHECK(ends.client.channel->error() == "");
}

TEST_CASE("a key of 16384 bits works") {
  TlsFiles files;
  const auto issued = files.ca.IssueHuge(TlsFiles::Client());
  CHECK(ServerSays(&files, issued).name == "spiffe://a/b");
}

TEST_CASE("a key and the CAs of clients that others may write are refused, other files are not") {
  TlsFiles files;
  TlsServerFiles server = files.ServerFiles(files.ca.Issue(TlsFiles::Server()));
  server.clients = ClientCertificates::kOptional;
  server.client_ca = files.CaFile(files.ca);
  const auto says = [&] { return TlsServer::Load(server).status().message(); };
  for (const mode_t mode : {0620U, 0602U}) {
    for (const std::string& file : {server.key, server.client_ca}) {
      REQUIRE(chmod(file.c_str(), mode) == 0);
      CHECK(Has(says(), file + " can be written by others than its owner"));
      CHECK(Has(says(), "run `chmod go-w " + file + "`"));
      REQUIRE(chmod(file.c_str(), 0644) == 0);
      CHECK(says() == "");
    }
  }
  REQUIRE(chmod(server.certificate.c_str(), 0666) == 0);
  CHECK(says() == "");
}

TEST_CASE("files that cannot be used are named, with what is wrong") {
  TlsFiles files;
  const auto one = files.ca.Issue(TlsFiles::Server());
  const auto two = files.ca.Issue(TlsFiles::Server());
  TlsServerFiles good = files.ServerFiles(one);
  const auto says = [](const TlsServerFiles& tried) {
    return TlsServer::Load(tried).status().ToString();
  };
  const auto file = [&](const std::string& name, const std::string& text) {
    testing::WriteStringToFile(files.Sub(name), text);
    return files.Sub(name);
  };
  CHECK(says(good) == "ok");
  TlsServerFiles tried = good;
  tried.key = files.ServerFiles(two).key;
  CHECK(says(tried) == "invalid_argument: the key of " + tried.key +
                           " is not that of the first certificate of " + good.certificate +
                           " (db.example)");
  tried = good;
  tried.certificate = files.Sub("none");
  CHECK(says(tried) ==
        "io_error: cannot read " + tried.certificate + ": No such file or directory");
  tried.certificate = file("empty", "");
  CHECK(says(tried) ==
        "invalid_argument: " + tried.certificate +
            " has no certificate: it must be PEM, with \"-----BEGIN CERTIFICATE-----\"");
  tried.certificate = file("cut", one.certificate.substr(0, one.certificate.size() / 2));
  CHECK(Has(says(tried), tried.certificate + ": certificate 1 cannot be read: "));
  tried.certificate = file("long", std::string(2 << 20, 'x'));
  CHECK(Has(says(tried), "is longer than 1 MiB"));
  tried = good;
  tried.key = good.certificate;
  CHECK(Has(says(tried), tried.key + " has no key: it must be PEM"));
  tried.key = "/dev/null";
  CHECK(says(tried) == "invalid_argument: /dev/null is no regular file");
  tried = good;
  tried.clients = ClientCertificates::kOptional;
  tried.client_ca = files.Sub("none");
  CHECK(Has(says(tried), "cannot read " + tried.client_ca));
  // Key and certificate may share a file, in any order.
  tried = good;
  tried.key = tried.certificate = file("both", one.key + one.certificate);
  CHECK(says(tried) == "ok");
  const auto half = TlsClient::Load({.certificate = "a.pem"});
  CHECK(Has(half.status().ToString(), "needs both its file and that of its key; only a.pem"));
}

TEST_CASE("a server knows when its certificate ends, also if that is past") {
  TlsFiles files;
  CertificateSpec spec = TlsFiles::Server();
  spec.begins_s = -7200;
  spec.ends_s = -3600;
  const auto loaded = TlsServer::Load(files.ServerFiles(files.ca.Issue(spec)));
  REQUIRE(loaded.ok());
  const auto now_s = WallMs() / 1000;
  CHECK((*loaded)->ends_at_s() <= now_s - 3600);
  CHECK((*loaded)->ends_at_s() > now_s - 3700);
  CHECK((*loaded)->names() == "db.example");
}

}  // namespace
}  // namespace nowcalls::net
