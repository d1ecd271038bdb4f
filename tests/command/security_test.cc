// The programs with TLS and secrets.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "net/tls.h"
#include "support/certificates.h"
#include "support/fake_server.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "wire/messages.h"

namespace nowcalls::testing {
namespace {

constexpr char kSecret[] = "nc-0123456789abcdef";

// A server behind TLS that wants the secret before anything else.
class SafeServer {
 public:
  SafeServer() {
    WriteStringToFile(ca_file(), ca_.certificate());
    WriteStringToFile(secret_file(), std::string(kSecret) + "\n");
    REQUIRE(chmod(secret_file().c_str(), 0600) == 0);
  }
  std::string ca_file() const { return dir_.Sub("ca.pem"); }
  std::string secret_file() const { return dir_.Sub("secret"); }

  // Of one connection.
  FakeServer Serve() const {
    const CertificateFiles own = WriteCertificate(
        dir_.path(), "server", ca_.Issue({.common_name = "server", .names = {{'I', "127.0.0.1"}}}));
    auto tls = net::TlsServer::Load({.certificate = own.certificate, .key = own.key});
    REQUIRE(tls.status().ToString() == "ok");
    return FakeServer(Answer, [loaded = *std::move(tls)] {
      return net::MakeChannelByFirstByte(loaded, /*plain=*/false);
    });
  }

 private:
  static void Answer(FakeServer::Peer* peer) {
    wire::Envelope request;
    bool known = false;
    while (peer->Take(&request)) {
      wire::IdentifyParams params;
      wire::RequestError error;
      const bool identify = request.method == wire::Method::kIdentify &&
                            wire::DecodeIdentify(request.params, &params, &error);
      if (identify) known = params.secret == kSecret;
      peer->Answer([&](wire::OutputBuffer* out) {
        if (!known) {
          wire::EncodeError(request.msgid, {wire::ErrorCode::kPermission, "show a secret"}, out);
        } else if (identify) {
          wire::EncodeIdentify(request.msgid, {.name = "checkout"}, out);
        } else {
          wire::EncodePing(request.msgid, 77, out);
        }
      });
    }
  }

  const TempDir dir_;
  const Authority ca_{"Test CA"};
};

}  // namespace

TEST_CASE("the tools show a secret through TLS, as options or the environment say") {
  const SafeServer safe;
  const auto ping = [&](const std::string& program, std::vector<std::string> options,
                        const Environment& environment = {}) {
    const FakeServer server = safe.Serve();
    options.insert(options.begin(), {ProductBinary(program), "ping", "--server", server.address()});
    if (program == "nowcalls") options.insert(options.end(), {"--count", "1"});
    return RunProgram(options, environment);
  };
  for (const char* program : {"nowcalls", "nowcalls-admin"}) {
    CAPTURE(program);
    const Finished by_option =
        ping(program, {"--tls-ca", safe.ca_file(), "--secret-file", safe.secret_file()});
    CHECK_MESSAGE(by_option.exit_code == 0, by_option.err);
    const Finished by_variable = ping(program, {},
                                      {{"NOWCALLS_TLS", "on"},
                                       {"NOWCALLS_TLS_CA", safe.ca_file()},
                                       {"NOWCALLS_SECRET_FILE", safe.secret_file()}});
    CHECK_MESSAGE(by_variable.exit_code == 0, by_variable.err);
    const Finished unknown = ping(program, {"--tls-ca", safe.ca_file()});
    CHECK(unknown.exit_code == 1);
    CHECK(Contains(unknown.err, "PERMISSION: show a secret"));
    const Finished plain = ping(program, {});
    CHECK(plain.exit_code == 69);
    CHECK(Contains(plain.err, "does it speak TLS only?"));
  }
}

TEST_CASE("exec runs nothing for whom the server does not let in, whatever --fallback says") {
  const SafeServer safe;
  const FakeServer server = safe.Serve();
  const Finished denied =
      RunProgram({ProductBinary("nowcalls"), "exec", "--server", server.address(), "--tls-ca",
                  safe.ca_file(), "--flow", "7", "--fallback", "pass", "--", "echo", "ran"});
  CHECK(denied.exit_code == 125);
  CHECK(denied.out.empty());
  CHECK(Contains(denied.err, "hello refused: PERMISSION: show a secret"));
}

TEST_CASE("a file that is wrong ends the tools before they dial") {
  const SafeServer safe;
  REQUIRE(chmod(safe.secret_file().c_str(), 0644) == 0);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"nowcalls", "ping"},
                                                {"nowcalls-admin", "ping"},
                                                {"nowcalls-bench"}}) {
    CAPTURE(words.front());
    const auto run = [&](const std::vector<std::string>& options) {
      std::vector<std::string> all = words;
      all.front() = ProductBinary(words.front());
      all.insert(all.end(), options.begin(), options.end());
      const Finished finished = RunProgram(all);
      CHECK(finished.exit_code == 64);
      return finished.err;
    };
    CHECK(Contains(run({"--secret-file", safe.secret_file()}),
                   "--secret-file: others than its owner may read or write "));
    CHECK(Contains(run({"--tls-ca", safe.secret_file()}), safe.secret_file()));
    CHECK(Contains(run({"--tls-cert", safe.ca_file()}), "--tls-cert and --tls-key"));
  }
}

}  // namespace nowcalls::testing
