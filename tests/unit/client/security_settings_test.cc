#include "client/security_settings.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdio>
#include <string>

#include "support/certificates.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace nowcalls::client {
namespace {

using testing::Contains;
using testing::TempDir;
using testing::WriteStringToFile;

std::string SecretFile(const TempDir& dir, const std::string& text, mode_t mode = 0600) {
  std::string file = dir.Sub("secret");
  (void)std::remove(file.c_str());  // It may be read-only.
  WriteStringToFile(file, text);
  REQUIRE(chmod(file.c_str(), mode) == 0);
  return file;
}

std::string ErrorOf(const SecuritySettings& options, const SecuritySettings& environment = {}) {
  const Status status = ReadSecurity(options, environment).status();
  CHECK(status.code() == StatusCode::kInvalidArgument);
  return status.message();
}

TEST_CASE("nothing said is a plain connection without a secret") {
  const Result<Security> security = ReadSecurity({}, {});
  REQUIRE(security.ok());
  CHECK_FALSE(security->tls.on);
  CHECK(security->secret.empty());
}

TEST_CASE("the first line of a file that is its owner's alone is the secret") {
  const TempDir dir;
  for (const char* text : {"s3cret", "s3cret\n", "s3cret\r\n", "s3cret\nnot this\n"}) {
    const auto security = ReadSecurity({.secret_file = SecretFile(dir, text, 0400)}, {});
    REQUIRE(security.ok());
    CHECK(security->secret == "s3cret");
  }
}

TEST_CASE("a secret's file is its owner's, or root's for a group of the process to read") {
  const std::vector<gid_t> groups = {100, 2000};
  const auto may = [&](mode_t mode, uid_t owner, gid_t group) {
    struct stat info {};
    info.st_mode = S_IFREG | mode;
    info.st_uid = owner;
    info.st_gid = group;
    return IsSecretFile(info, groups);
  };
  CHECK(may(0400, 7, 7));
  CHECK(may(0600, 7, 7));
  CHECK(may(0440, 0, 2000));  // Kubernetes with fsGroup 2000.
  CHECK(may(0640, 0, 100));
  CHECK_FALSE(may(0440, 7, 2000));
  CHECK_FALSE(may(0440, 0, 7));
  for (const mode_t mode : {0660U, 0450U, 0444U, 0404U}) CHECK_FALSE(may(mode, 0, 2000));
}

TEST_CASE("a secret's file that is wrong is named, with what to do, and what it has is not told") {
  const TempDir dir;
  for (const mode_t mode : {0650, 0604, 0660, 0602}) {
    const std::string file = SecretFile(dir, "s3cret\n", mode);
    const std::string error = ErrorOf({.secret_file = file});
    CHECK(error.starts_with("--secret-file: others than its owner may read or write " + file));
    CHECK(error.ends_with("run: chmod 600 " + file));
    CHECK_FALSE(Contains(error, "s3cret"));
  }
  CHECK(Contains(ErrorOf({.secret_file = SecretFile(dir, "")}), "no secret in its first line"));
  CHECK(Contains(ErrorOf({.secret_file = SecretFile(dir, "\ns3cret\n")}), "no secret"));
  CHECK(Contains(ErrorOf({.secret_file = SecretFile(dir, std::string(5000, 'x'))}), "4096 bytes"));
  CHECK(Contains(ErrorOf({.secret_file = SecretFile(dir, std::string(300, 'x'))}), "256 bytes"));
  CHECK(ErrorOf({}, {.secret_file = dir.Sub("none")})
            .starts_with("NOWCALLS_SECRET_FILE: cannot open "));
}

TEST_CASE("options beat the environment, and each file of TLS turns it on") {
  const TempDir dir;
  const std::string ca = dir.Sub("ca.pem");
  WriteStringToFile(ca, testing::Authority("Test CA").certificate());
  const auto tls = [](const SecuritySettings& options, const SecuritySettings& environment) {
    const auto security = ReadSecurity(options, environment);
    REQUIRE(security.status().ToString() == "ok");
    return security->tls;
  };
  CHECK(tls({.ca = ca}, {}).on);
  CHECK(tls({}, {.ca = ca}).ca == ca);
  CHECK(tls({.tls = "on"}, {.ca = ca}).ca == ca);
  CHECK_FALSE(tls({}, {.tls = "off", .ca = ca}).on);
  CHECK(tls({}, {.tls = "off", .ca = ca}).ca.empty());
  CHECK(tls({.ca = ca}, {.tls = "off", .ca = "/nowhere"}).ca == ca);
  CHECK(tls({.server_name = "db.example"}, {.ca = ca}).server_name == "db.example");
}

TEST_CASE("settings of TLS that cannot be are told before anything is dialled") {
  const TempDir dir;
  CHECK(ErrorOf({}, {.tls = "yes"}) == "NOWCALLS_TLS: 'yes' is neither on nor off");
  CHECK(Contains(ErrorOf({.certificate = dir.Sub("a.pem")}), "--tls-cert and --tls-key"));
  CHECK(Contains(ErrorOf({}, {.key = dir.Sub("a.key")}), "go together"));
  CHECK(Contains(ErrorOf({.ca = dir.Sub("none.pem")}), dir.Sub("none.pem")));
}

TEST_CASE("options of TLS without TLS, and half a certificate, are mistakes of a program") {
  CHECK(CheckTls({.ca = "ca.pem"}).message() == "tls.ca is set, but tls.on is not");
  CHECK(CheckTls({.server_name = "x"}).message() == "tls.server_name is set, but tls.on is not");
  CHECK(CheckTls({.on = true, .certificate = "a.pem"}).message() ==
        "tls.certificate needs tls.key, the key of it");
  CHECK(CheckTls({.on = true, .key = "a.key"}).message() ==
        "tls.key needs tls.certificate, whose key it is");
}

}  // namespace
}  // namespace nowcalls::client
