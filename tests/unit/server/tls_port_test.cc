#include "server/security/tls_port.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <string>

#include "net/peer.h"
#include "server/config/settings.h"
#include "support/process.h"
#include "unit/net/tls_ends.h"
#include "unit/server/loop_fixture.h"

namespace nowcalls::server {
namespace {

using net::TlsFiles;

net::Peer PeerAt(const std::string& host, bool loopback = false) {
  return {.name = host + ":1", .host = host, .loopback = loopback};
}

PlainChoice Plain(const std::vector<std::string>& values) {
  ServerConfig config;
  for (const Setting& setting : Settings()) {
    if (setting.name == "plain") REQUIRE(setting.set(values, &config).ok());
  }
  return config.plain;
}

TEST_CASE("a key that everybody on the machine may read is warned of, one of a group is not") {
  TlsFiles files;
  ServerConfig config;
  CHECK(WarningOfKey(config) == "");
  config.tls = files.ServerFiles(files.ca.Issue(TlsFiles::Server()));
  REQUIRE(chmod(config.tls.key.c_str(), 0604) == 0);
  const std::string warning = WarningOfKey(config);
  CHECK(warning.starts_with("everybody on this machine may read " + config.tls.key));
  CHECK(warning.ends_with("run `chmod o-r " + config.tls.key + "`"));
  REQUIRE(chmod(config.tls.key.c_str(), 0640) == 0);
  CHECK(WarningOfKey(config) == "");
}

TEST_CASE("whose connections may be plain") {
  TlsFiles files;
  engine::TlsCounters counters;
  ServerConfig config;
  const net::Peer near = PeerAt("127.0.0.1", /*loopback=*/true);
  const net::Peer far = PeerAt("10.1.2.3");
  const net::Peer mapped = PeerAt("::ffff:10.1.2.3");
  SUBCASE("all where TLS is off") {
    const TlsPort port(&config, nullptr, &counters);
    CHECK_FALSE(port.on());
    CHECK(port.MayBePlain(near));
    CHECK(port.MayBePlain(far));
    CHECK(counters.certificate_ends_at_s == 0);
  }
  config.tls = files.ServerFiles(files.ca.Issue(TlsFiles::Server()));
  const auto tls = LoadTls(config);
  REQUIRE(tls.ok());
  const auto may = [&](const std::vector<std::string>& plain, const net::Peer& peer) {
    if (!plain.empty()) config.plain = Plain(plain);
    return TlsPort(&config, *tls, &counters).MayBePlain(peer);
  };
  SUBCASE("those of this machine where TLS is on") {
    CHECK(may({}, near));
    CHECK_FALSE(may({}, far));
    CHECK(counters.certificate_ends_at_s > 0);
  }
  SUBCASE("as it is said") {
    CHECK_FALSE(may({"off"}, near));
    CHECK_FALSE(may({"10.0.0.0/8"}, near));
    CHECK(may({"10.0.0.0/8"}, far));
    CHECK(may({"10.0.0.0/8"}, mapped));
    CHECK_FALSE(may({"10.2.0.0/16", "fd00::/8"}, far));
    CHECK(may({"10.2.0.0/16", "loopback"}, near));
  }
}

TEST_CASE("files that change are in force for new connections, and broken ones are not") {
  TlsFiles files;
  engine::TlsCounters counters;
  ServerConfig config;
  config.tls = files.ServerFiles(files.ca.Issue(TlsFiles::Server()));
  const auto tls = LoadTls(config);
  REQUIRE(tls.ok());
  TestLoop loop;
  TlsPort port(&config, *tls, &counters, {.settle_ms = 20, .poll_ms = 20, .idle_look_ms = 50});
  port.Watch(loop.get());
  CHECK(loop.RunUntil([&] { return port.idle(); }));
  const auto serves = [&](const std::string& host) {
    const auto client = net::TlsClient::Load(files.ClientFiles());
    net::TlsEnds ends;
    ends.server.channel = port.MakeChannel(PeerAt("10.0.0.1"));
    ends.client.channel = (*client)->MakeChannel(host);
    ends.ShakeHands();
    return !ends.client.failed;
  };
  CHECK(serves("db.example"));
  testing::CertificateSpec spec = TlsFiles::Server();
  spec.names = {{'D', "other.example"}};
  spec.ends_s = 100 * 24 * 3600;
  const auto other = files.ca.Issue(spec);
  const int64_t ended = counters.certificate_ends_at_s;
  testing::WriteStringToFile(config.tls.key, "garbage");
  port.ReadNow();
  CHECK(loop.RunUntil([&] { return port.idle(); }));
  CHECK(serves("db.example"));
  CHECK(counters.certificate_ends_at_s == ended);
  testing::WriteStringToFile(config.tls.key, other.key);
  testing::WriteStringToFile(config.tls.certificate, other.certificate);
  CHECK(loop.RunUntil([&] { return counters.certificate_ends_at_s != ended; }));
  CHECK(serves("other.example"));
  CHECK_FALSE(serves("db.example"));
  port.StopWatching();
  CHECK(loop.RunUntil([&] { return port.idle(); }));
}

TEST_CASE("a file of TLS that is gone is a mistake of the operator") {
  ServerConfig config;
  CHECK(*LoadTls(config) == nullptr);
  config.tls = {.certificate = "/none.pem", .key = "/none.key"};
  CHECK(LoadTls(config).status().ToString() ==
        "invalid_argument: TLS: cannot read /none.pem: No such file or directory");
}

}  // namespace
}  // namespace nowcalls::server
