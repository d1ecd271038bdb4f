// What an access file may say, and what is said of one that is wrong.
#include "access/access_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "access/access_list.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "test_paths.h"

namespace nowcalls::access {
namespace {

using testing::TempDir;
using testing::WriteStringToFile;

const std::string kDigest(64, 'a');

// Two lines, and what follows them.
std::string PrincipalText(const std::string& name, const std::string& fields) {
  return "[[principal]]\nname = \"" + name + "\"\n" + fields;
}
std::string ClientText(const std::string& name, const std::string& fields) {
  return PrincipalText(name, "role = \"client\"\n" + fields);
}

std::vector<std::string> ProblemsOf(const std::string& text) {
  return ParseAccess(text, "f").problems;
}

// The only one.
std::string ProblemOf(const std::string& text) {
  const std::vector<std::string> problems = ProblemsOf(text);
  CAPTURE(text);
  REQUIRE(problems.size() == 1);
  return problems.front();
}

TEST_CASE("the sample of an access file is read as it says") {
  const std::string text =
      testing::ReadFileToString(NOWCALLS_SOURCE_DIR "/data/access/sample.toml");
  const auto list = AccessList::Parse(text, "sample.toml");
  REQUIRE_MESSAGE(list.ok(), list.status().message());
  const std::vector<Entry>& entries = (*list)->entries();
  REQUIRE(entries.size() == 4);
  CHECK(entries[0].principal.name == "checkout");
  CHECK(entries[0].principal.role == Role::kClient);
  CHECK(entries[0].principal.namespaces == std::vector<std::string>{"shop", "shop-*"});
  CHECK(entries[0].secrets.size() == 2);
  CHECK(entries[0].secrets[0][1] == 0x1e);
  CHECK(entries[0].certificates == std::vector<std::string>{"spiffe://prod/checkout"});
  CHECK(entries[1].networks.size() == 2);
  CHECK(entries[2].principal.role == Role::kObserver);
  CHECK_FALSE(entries[2].principal.namespaces.has_value());
  CHECK(entries[3].principal.role == Role::kAdministrator);
}

TEST_CASE("each mistake in an access file is told with its line, its principal and what to do") {
  const std::string secret = "secret_sha256 = \"" + kDigest + "\"\n";
  const std::pair<std::string, std::string> mistakes[] = {
      {"", "f:1: there is no [[principal]]: add one with `nowcalls-admin access add`"},
      {"principal = []",
       "f:1: there is no [[principal]]: add one with `nowcalls-admin access add`"},
      {"[principal]\n", "f:1: principal must be written as [[principal]]"},
      {"principal = [1]", "f:1: principal 1: must be a table, written as [[principal]]"},
      {"x = 1\n" + ClientText("a", secret),
       "f:1: unknown key 'x'; the file has only [[principal]] and its fields"},
      {"a = ", "f:1: not valid TOML: Error while parsing key-value pair: encountered end-of-file"},
      {ClientText("a", secret + "role = 1\n"),
       "f:5: not valid TOML: Error while parsing key-value pair: cannot redefine existing string "
       "'role'"},
      {"[[principal]]\nrole = \"client\"\n" + secret, "f:1: principal 1: name is missing"},
      {"[[principal]]\nname = 7\nrole = \"client\"\n" + secret,
       "f:2: principal 1: name must be a string"},
      {ClientText("", secret), "f:2: principal 1: name must be 1..64 bytes, got 0"},
      {ClientText(std::string(65, 'x'), secret),
       "f:2: principal 1: name must be 1..64 bytes, got 65"},
      {PrincipalText("a", secret), "f:1: principal 'a': role is missing"},
      {PrincipalText("a", "role = \"anybody\"\n" + secret),
       "f:3: principal 'a': role must be observer, client or administrator, got 'anybody'"},
      {ClientText("a", secret + "namespace = \"x\"\n"),
       "f:5: principal 'a': unknown key 'namespace'; did you mean namespaces?"},
      {ClientText("a", secret + "namespaces = []\n"),
       "f:5: principal 'a': namespaces is empty; leave it out for all namespaces"},
      {ClientText("a", secret + "namespaces = [\n 'b',\n 'a*b'\n]\n"),
       "f:7: principal 'a': namespaces: 'a*b' may have '*' at its end only"},
      {ClientText("a", secret + "namespaces = ['**']\n"),
       "f:5: principal 'a': namespaces: '**' may have '*' at its end only"},
      {ClientText("a", secret + "namespaces = ['']\n"),
       "f:5: principal 'a': namespaces: '' must be 1..128 bytes, got 0"},
      {ClientText("a", secret + "namespaces = true\n"),
       "f:5: principal 'a': namespaces must be a string or an array of strings"},
      {ClientText("a", "certificates = ['b', 1]\n"),
       "f:4: principal 'a': certificates must be a string or an array of strings"},
      {ClientText("a", ""),
       "f:1: principal 'a': cannot say who it is: add secret_sha256, certificates or networks"},
      {ClientText("a", "certificates = ['']\n"),
       "f:4: principal 'a': certificates: a name must be 1..2048 bytes, got 0"},
      {ClientText("a", "networks = ['10.0.0.0']\n"),
       "f:4: principal 'a': networks: must be ADDRESS/PREFIX, with /32 for one address, got "
       "'10.0.0.0'"},
  };
  for (const auto& [text, problem] : mistakes) CHECK(ProblemOf(text) == problem);
}

TEST_CASE("what shows one principal cannot show another, too") {
  const auto two = [](const std::string& one, const std::string& other) {
    return ClientText("a", one) + ClientText("b", other);
  };
  CHECK(ProblemOf(two("secret_sha256 = \"" + kDigest + "\"\n",
                      "secret_sha256 = [\"" + std::string(64, 'A') + "\"]\n")) ==
        "f:8: principal 'b': secret_sha256 is that of principal 'a', too; it can belong to one "
        "principal only");
  CHECK(ProblemOf(two("certificates = ['x']\n", "certificates = ['y', 'x']\n")) ==
        "f:8: principal 'b': certificates: 'x' is that of principal 'a', too; it can belong to one "
        "principal only");
  CHECK(ProblemOf(two("networks = ['10.0.0.0/8']\n", "networks = ['::ffff:10.0.0.0/104']\n")) ==
        "f:8: principal 'b': networks: '::ffff:10.0.0.0/104' is that of principal 'a', too; it can "
        "belong to one principal only");
  CHECK(ProblemOf(ClientText("a", "certificates = ['x', 'x']\n")) ==
        "f:4: principal 'a': certificates: 'x' is there twice; name it once");
  CHECK(ProblemOf(ClientText("a", "certificates = ['x']\n") +
                  ClientText("a", "networks = ['::/0']\n")) ==
        "f:6: principal 2: name 'a' is that of principal 1, too; give each a name of its own");
  CHECK(ProblemsOf(two("networks = ['10.0.0.0/8']\n", "networks = ['10.0.0.0/9']\n")).empty());
}

TEST_CASE("a secret that was written in place of its digest is not shown") {
  const std::string mine = "ncs_mine";
  for (const std::string& value : {"\"" + mine + "\"", "[\"" + mine + "\"]"}) {
    const std::string problem = ProblemOf(ClientText("a", "secret_sha256 = " + value + "\n"));
    CHECK(problem.starts_with("f:4: principal 'a': secret_sha256 must be 64 hexadecimal digits"));
    CHECK(problem.find(mine) == std::string::npos);
  }
  const std::string unquoted = ProblemOf(ClientText("a", "secret_sha256 = ncs_mine\n"));
  CHECK(unquoted.starts_with("f:4: not valid TOML: "));
  CHECK(unquoted.find("mine") == std::string::npos);
  for (const std::string key : {"secret", "password"}) {
    for (const std::string& problem : ProblemsOf(ClientText("a", key + " = \"ncs_mine\"\n"))) {
      CHECK(problem.find("ncs_") == std::string::npos);
    }
  }
  // Whoever showed nothing would be taken for it.
  CHECK(ProblemOf(ClientText("a",
                             "secret_sha256 = \"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca4"
                             "95991b7852b855\"\n")) ==
        "f:4: principal 'a': secret_sha256 is that of an empty text; make it of a secret");
}

TEST_CASE("all mistakes are told by their lines, and one of them by a list that is refused") {
  const std::string text =
      ClientText("a", "") + "x = 1\n" + PrincipalText("b", "networks = ['::1/127']\n");
  CHECK(ProblemsOf(text) ==
        std::vector<std::string>{
            "f:1: principal 'a': cannot say who it is: add secret_sha256, certificates or networks",
            "f:4: principal 'a': unknown key 'x'", "f:5: principal 'b': role is missing",
            "f:7: principal 'b': networks: must be a network, such as ::/127, got '::1/127'"});
  CHECK(AccessList::Parse(text, "f").status().message() ==
        "f:1: principal 'a': cannot say who it is: add secret_sha256, certificates or networks; "
        "and 3 other mistakes: `nowcalls-admin access check` shows all");
}

TEST_CASE("lists of an access file are bounded") {
  const auto many = [](size_t count, const std::string& before, const std::string& after) {
    std::string list;
    for (size_t i = 0; i < count; ++i)
      list += "\"" + before + std::to_string(100 + i) + after + "\",";
    return "[" + list + "]\n";
  };
  const std::string digest(61, 'b');
  CHECK(ProblemsOf(ClientText("a", "secret_sha256 = " + many(4, digest, ""))).empty());
  CHECK(ProblemOf(ClientText("a", "secret_sha256 = " + many(5, digest, ""))) ==
        "f:4: principal 'a': secret_sha256 has 5 elements, and at most 4 are allowed");
  CHECK(ProblemsOf(ClientText("a", "certificates = " + many(100, "x", ""))).empty());
  CHECK(ProblemOf(ClientText("a", "certificates = " + many(101, "x", ""))) ==
        "f:4: principal 'a': certificates has 101 elements, and at most 100 are allowed");
  std::string principals;
  const auto add = [&](size_t i) {
    const std::string name = "p" + std::to_string(i);
    principals += ClientText(name, "certificates = ['" + name + "']\n");
  };
  for (size_t i = 0; i < AccessList::kPrincipalsMax; ++i) add(i);
  CHECK(ProblemsOf(principals).empty());
  add(AccessList::kPrincipalsMax);
  CHECK(ProblemOf(principals) == "f:1: 1001 principals, and at most 1000 are allowed");
  // A parser would recurse through them.
  CHECK(ProblemOf("a" + std::string(100'000, '.')) ==
        "f: more than 4000 dots outside of strings; the keys of principals have none");
}

TEST_CASE("an access file that others may write, or that is another user's, is not believed") {
  const TempDir dir;
  const std::string file = dir.path() + "/access.toml";
  WriteStringToFile(file, ClientText("a", "certificates = ['x']\n"));
  REQUIRE(chmod(file.c_str(), 0644) == 0);
  CHECK(AccessList::Read(file).ok());  // Digests are no secrets.
  for (const mode_t mode : {0664U, 0646U, 0622U}) {
    REQUIRE(chmod(file.c_str(), mode) == 0);
    for (const Reader reader : {Reader::kServer, Reader::kTool}) {
      const Status refused = ReadAccessText(file, reader).status();
      CHECK(refused.code() == StatusCode::kInvalidArgument);
      CHECK(refused.message() == file +
                                     " can be written by others than its owner, and it says who "
                                     "may come in: run `chmod go-w " +
                                     file + "`");
    }
  }
  REQUIRE(chmod(file.c_str(), 0640) == 0);
  if (geteuid() != 0) {
    MESSAGE("skipped: only root can give a file away");
    return;
  }
  REQUIRE(chown(file.c_str(), 4711, 0) == 0);
  CHECK(AccessList::Read(file).status().message() ==
        file +
            " belongs to user 4711, and only root's files and those of user 0 are believed: "
            "run `chown root " +
            file + "`");
  CHECK(ReadAccessText(file, Reader::kTool).ok());
}

TEST_CASE("an access file that cannot be one is a mistake of its operator") {
  const TempDir dir;
  const std::string pipe = dir.path() + "/pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& file : {dir.path(), pipe, dir.path() + "/none", pipe + "/below"}) {
    const Status refused = AccessList::Read(file).status();
    CHECK(refused.code() == StatusCode::kInvalidArgument);
    CHECK(refused.message().find(file) != std::string::npos);
  }
  const std::string large = dir.path() + "/large";
  WriteStringToFile(large, std::string(AccessList::kFileBytesMax, '#'));
  CHECK(ReadAccessText(large, Reader::kServer).ok());
  WriteStringToFile(large, std::string(AccessList::kFileBytesMax + 1, '#'));
  CHECK(AccessList::Read(large).status().message() == large + " is longer than 1048576 bytes");
}

}  // namespace
}  // namespace nowcalls::access
