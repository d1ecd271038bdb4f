#include "server/config/tls_settings.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "server/config/config.h"

namespace nowcalls::server {
namespace {

Result<Invocation> ReadTls(const std::vector<std::string>& flags) {
  std::vector<const char*> argv = {"nowcalls-server"};
  for (const std::string& flag : flags) argv.push_back(flag.c_str());
  return ReadInvocation(static_cast<int>(argv.size()), argv.data(), {});
}

std::string TlsErrorOf(const std::vector<std::string>& flags) {
  return ReadTls(flags).status().message();
}

TEST_CASE("settings of TLS are read") {
  const auto read =
      ReadTls({"--tls-cert=a.pem", "--tls-key=a.key", "--tls-client-ca=ca.pem",
               "--tls-client=required", "--tls-min=1.2", "--plain=loopback", "--plain=10.0.0.0/8"});
  REQUIRE(read.status().ToString() == "ok");
  const net::TlsServerFiles& tls = read->config.tls;
  CHECK(tls.certificate == "a.pem");
  CHECK(tls.key == "a.key");
  CHECK(tls.client_ca == "ca.pem");
  CHECK(tls.clients == net::ClientCertificates::kRequired);
  CHECK(tls.version == net::TlsVersion::k12);
  CHECK(read->config.plain.loopback);
  CHECK(read->config.plain.networks.size() == 1);
  CHECK(DescribeSettings(*read).find("loopback,10.0.0.0/8") != std::string::npos);
}

TEST_CASE("settings of TLS that do not go together are refused, with what to do") {
  const std::string pair[] = {"--tls-cert=a.pem", "--tls-key=a.key"};
  CHECK(TlsErrorOf({pair[0]}) ==
        "tls-cert is set, and tls-key is not: TLS needs both. Set both, or neither");
  CHECK(TlsErrorOf({pair[1]}) ==
        "tls-key is set, and tls-cert is not: TLS needs both. Set both, or neither");
  CHECK(TlsErrorOf({"--tls-client-ca=ca.pem"}) ==
        "tls-client-ca is set, and TLS is off: set tls-cert and tls-key, too");
  CHECK(TlsErrorOf({"--tls-client=optional"}) ==
        "tls-client is set, and TLS is off: set tls-cert and tls-key, too");
  CHECK(TlsErrorOf({pair[0], pair[1], "--tls-client=optional"}) ==
        "tls-client is optional, and tls-client-ca is not set: set it to a PEM file of the CAs "
        "that sign client certificates");
  CHECK(TlsErrorOf({pair[0], pair[1], "--tls-client-ca=ca.pem"}) ==
        "tls-client-ca is set, and tls-client is off, so nobody is asked for a certificate: set "
        "tls-client to optional or required, or leave tls-client-ca out");
  CHECK(TlsErrorOf({"--plain=off"}) ==
        "plain is off, and TLS is off, too, so nobody could connect to the port: set tls-cert and "
        "tls-key, or leave plain out");
  CHECK(ReadTls({pair[0], pair[1], "--plain=off"}).ok());
}

TEST_CASE("values of TLS that are none are refused") {
  CHECK(TlsErrorOf({"--tls-client=maybe"}) ==
        "flag --tls-client: must be off, optional or required, got 'maybe'");
  CHECK(TlsErrorOf({"--tls-min=1.1"}) == "flag --tls-min: must be 1.2 or 1.3, got '1.1'");
  CHECK(TlsErrorOf({"--plain=off", "--plain=loopback"}) ==
        "flag --plain: says off, and something else: leave one out");
  CHECK(TlsErrorOf({"--plain=10.0.0.0"}).find("flag --plain: must be off, loopback or a network") ==
        0);
}

}  // namespace
}  // namespace nowcalls::server
