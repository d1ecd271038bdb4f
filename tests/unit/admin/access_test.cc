// The commands on access files: what they write, print and refuse.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "access/access_list.h"
#include "admin/access_file.h"
#include "admin/arguments.h"
#include "admin/commands.h"
#include "admin/print_access.h"
#include "base/exit_codes.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/admin/string_output.h"

namespace nowcalls::admin {
namespace {

using testing::ReadFileToString;
using testing::TempDir;
using testing::WriteStringToFile;

ParsedArguments ParseAccessWords(const std::vector<std::string>& words) {
  std::vector<const char*> argv = {"nowcalls-admin", "access"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return ParseArguments(static_cast<int>(argv.size()), argv.data());
}

std::string AccessErrorOf(const std::vector<std::string>& words) {
  const ParsedArguments parsed = ParseAccessWords(words);
  CHECK(parsed.exit_code == kExitUsage);
  return parsed.err.substr(0, parsed.err.find('\n'));
}

struct AccessEnded {
  int exit_code = 0;
  std::string out;
  std::string err;
};

AccessEnded RunAccess(const std::vector<std::string>& words, int out_error = 0) {
  const ParsedArguments parsed = ParseAccessWords(words);
  REQUIRE_MESSAGE(parsed.arguments.has_value(), parsed.err);
  StringOutput out;
  if (out_error != 0) out.FailWith(out_error);
  AccessEnded ended;
  const Streams streams{.out = out.get(), .err = [&](std::string_view b) { ended.err += b; }};
  ended.exit_code = Run(*parsed.arguments, streams);
  ended.out = out.text();
  return ended;
}

const access::Entry* OwnerOf(const std::string& secret, const access::AccessList& list) {
  return list.FindByDigest(access::DigestOf(secret));
}

// The line that was printed.
std::string SecretOf(const AccessEnded& ended) {
  CAPTURE(ended.err);
  CHECK(ended.exit_code == kExitOk);
  REQUIRE(ended.out.size() == 48);
  CHECK(ended.out.back() == '\n');
  std::string secret = ended.out.substr(0, 47);
  CHECK(secret.starts_with("ncs_"));
  CHECK(secret.find_first_not_of(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") ==
        std::string::npos);
  CHECK(ended.err.find(secret) == std::string::npos);
  return secret;
}

TEST_CASE("the commands of access files read their words") {
  const Arguments add =
      *ParseAccessWords({"add", "checkout", "--role", "client", "--namespace", "shop",
                         "--namespace", "shop-*", "--certificate", "spiffe://a", "--network",
                         "10.0.0.0/8", "--no-secret", "--access", "f"})
           .arguments;
  CHECK(add.command == Command::kAccessAdd);
  CHECK(add.principal.name == "checkout");
  CHECK(add.principal.role == access::Role::kClient);
  CHECK(add.principal.namespaces == std::vector<std::string>{"shop", "shop-*"});
  CHECK(add.principal.certificates == std::vector<std::string>{"spiffe://a"});
  CHECK(add.principal.networks == std::vector<std::string>{"10.0.0.0/8"});
  CHECK(add.no_secret);
  CHECK(add.file == "f");
  CHECK(add.server.empty());
  CHECK(ParseAccessWords({"rotate", "a", "--access", "f"}).arguments->command ==
        Command::kAccessRotate);
  CHECK(ParseAccessWords({"list", "--access", "f"}).arguments->command == Command::kAccessList);
  CHECK(ParseAccessWords({"check", "f"}).arguments->file == "f");
  const Arguments test = *ParseAccessWords({"test", "--server", "localhost:9"}).arguments;
  CHECK(test.command == Command::kAccessTest);
  CHECK(test.server == "localhost:9");
}

TEST_CASE("words that make no principal are refused before the file is touched") {
  const auto add = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"add", "--access", "f"});
    return AccessErrorOf(more);
  };
  CHECK(add({"a", "--role", "admin"}) ==
        "nowcalls-admin: --role: must be observer, client or administrator, got 'admin'");
  CHECK(add({"a"}) == "nowcalls-admin: --role is required");
  CHECK(add({"a", "--role", "client", "--namespace", "a*b"}) ==
        "nowcalls-admin: --namespace: may have '*' at its end only");
  CHECK(add({"a", "--role", "client", "--network", "10.0.0.0"}) ==
        "nowcalls-admin: --network: must be ADDRESS/PREFIX, with /32 for one address, got "
        "'10.0.0.0'");
  CHECK(add({"a", "--role", "client", "--no-secret"}) ==
        "nowcalls-admin: --no-secret: needs --certificate or --network beside it");
  CHECK(add({std::string(65, 'x'), "--role", "client"}) ==
        "nowcalls-admin: NAME: must be 1..64 bytes, got 65");
}

TEST_CASE("a new access file has the principal, whose secret is printed alone") {
  const TempDir dir;
  const std::string file = dir.path() + "/access.toml";
  const AccessEnded ended = RunAccess({"add", "a", "--role", "client", "--access", file});
  const std::string secret = SecretOf(ended);
  CHECK(ended.err.find("added principal 'a' to " + file) != std::string::npos);
  CHECK(ended.err.find("The file is new") != std::string::npos);
  struct stat info {};
  REQUIRE(stat(file.c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0640);
  CHECK(access::AccessList::Read(file).ok());
  CHECK(ReadFileToString(file).find(secret) == std::string::npos);
  const auto list = *access::AccessList::Read(file);
  REQUIRE(OwnerOf(secret, *list) != nullptr);
  CHECK(OwnerOf(secret, *list)->principal.name == "a");
}

TEST_CASE("a principal is appended, and the file keeps mode, owner, link and comments") {
  const TempDir dir;
  const std::string file = dir.path() + "/real.toml";
  const std::string link = dir.path() + "/access.toml";
  const std::string before =
      "# ours\n[[principal]]\nname = 'b'\nrole = 'observer'\ncertificates = 'b'\n";
  WriteStringToFile(file, before);
  REQUIRE(chmod(file.c_str(), 0604) == 0);
  REQUIRE(symlink("real.toml", link.c_str()) == 0);
  const uid_t owner = geteuid() == 0 ? 4711 : geteuid();
  if (geteuid() == 0) REQUIRE(chown(file.c_str(), owner, 42) == 0);
  const std::string secret =
      SecretOf(RunAccess({"add", "a", "--role", "client", "--access", link}));
  CHECK(ReadFileToString(file).starts_with(before + "\n[[principal]]\nname = \"a\"\n"));
  struct stat info {};
  REQUIRE(lstat(link.c_str(), &info) == 0);
  CHECK(S_ISLNK(info.st_mode));
  REQUIRE(stat(file.c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0604);
  CHECK(info.st_uid == owner);
  // Another secret for it, and for one that had none; both of a principal hold.
  const std::string other = SecretOf(RunAccess({"rotate", "a", "--access", link}));
  const std::string first = SecretOf(RunAccess({"rotate", "b", "--access", link}));
  CHECK(ReadFileToString(file).starts_with("# ours\n"));
  const auto list = *access::AccessList::Parse(ReadFileToString(file), file);
  CHECK(OwnerOf(secret, *list)->principal.name == "a");
  CHECK(OwnerOf(other, *list)->principal.name == "a");
  CHECK(OwnerOf(first, *list)->principal.name == "b");
  CHECK_FALSE(std::filesystem::exists(file + ".new"));
}

TEST_CASE("a change that is refused leaves the access file alone, and prints no secret") {
  const TempDir dir;
  const std::string file = dir.path() + "/access.toml";
  const std::string before = "[[principal]]\nname = 'a'\nrole = 'client'\nnetworks = '::1/128'\n";
  WriteStringToFile(file, before);
  const auto refused = [&](const std::vector<std::string>& words, const std::string& why) {
    const AccessEnded ended = RunAccess(words);
    CHECK(ended.exit_code == kExitUsage);
    CHECK(ended.out.empty());
    CHECK(ended.err == "nowcalls-admin: " + why + "\n");
    CHECK(ReadFileToString(file) == before);
  };
  refused({"add", "a", "--role", "client", "--access", file},
          file + " has a principal 'a' already");
  refused({"add", "b", "--role", "client", "--network", "::1/128", "--access", file},
          file +
              ":10: principal 'b': networks: '::1/128' is that of principal 'a', too; it can "
              "belong to one principal only");
  refused({"rotate", "b", "--access", file}, file + " has no principal 'b'");
  CHECK_FALSE(std::filesystem::exists(file + ".new"));
  WriteStringToFile(file + ".new", "");
  refused({"rotate", "a", "--access", file},
          file +
              ".new is there: another change of the file is under way. If none is, one was cut "
              "short: remove it");
  CHECK(std::filesystem::exists(file + ".new"));
  const AccessEnded none = RunAccess({"rotate", "a", "--access", dir.path() + "/none"});
  CHECK(none.exit_code == kExitUsage);
  CHECK(none.err.find("No such file") != std::string::npos);
}

TEST_CASE("a secret that could not be printed is told lost, and not shown") {
  const TempDir dir;
  const std::string file = dir.path() + "/access.toml";
  const AccessEnded ended = RunAccess({"add", "a", "--role", "client", "--access", file}, ENOSPC);
  CHECK(ended.exit_code == kExitIoError);
  CHECK(ended.err ==
        "nowcalls-admin: the file was changed, but the new secret could not be printed: it is "
        "lost, and its digest should be removed from the file\n");
}

TEST_CASE("secrets differ, so that nobody can guess one") {
  CHECK(MakeSecret() != MakeSecret());
  CHECK(MakeSecret().size() == 47);
}

TEST_CASE("a check tells all mistakes of an access file, or how many principals it has") {
  const TempDir dir;
  const std::string file = dir.path() + "/access.toml";
  WriteStringToFile(file, "x = 1\n[[principal]]\nname = 'a'\nrole = 'boss'\nnetworks = '::/0'\n");
  const AccessEnded wrong = RunAccess({"check", file});
  CHECK(wrong.exit_code == kExitUsage);
  CHECK(wrong.err == "nowcalls-admin: " + file +
                         ":1: unknown key 'x'; the file has only [[principal]] and its fields\n"
                         "nowcalls-admin: " +
                         file +
                         ":4: principal 'a': role must be observer, client or administrator, got "
                         "'boss'\n");
  WriteStringToFile(file, "[[principal]]\nname = 'a'\nrole = 'client'\nnetworks = '::/0'\n");
  const AccessEnded good = RunAccess({"check", file});
  CHECK(good.exit_code == kExitOk);
  CHECK(good.out == "1 principal\n");
}

TEST_CASE("a list of principals has counts of what shows them, and nothing of it") {
  const TempDir dir;
  const std::string file = dir.path() + "/access.toml";
  WriteStringToFile(file,
                    "[[principal]]\nname = 'a'\nrole = 'client'\nnamespaces = ['s', 's-*']\n"
                    "networks = ['10.0.0.0/8', '::/0']\n"
                    "[[principal]]\nname = 'b'\nrole = 'observer'\ncertificates = 'spiffe://b'\n");
  CHECK(RunAccess({"list", "--access", file, "--format", "csv"}).out ==
        "name,role,namespaces,secrets,certificates,networks\n"
        "a,client,\"s,s-*\",0,0,2\n"
        "b,observer,*,0,1,0\n");
}

TEST_CASE("an identity is printed as the server tells it") {
  StringOutput out;
  CHECK(PrintIdentity(Format::kCsv,
                      {.name = "a", .role = "client", .proof = "secret", .namespaces = {{"s"}}},
                      out.get())
            .ok());
  CHECK(
      PrintIdentity(Format::kJsonl, {.name = {}, .role = "anybody", .proof = "nothing"}, out.get())
          .ok());
  CHECK(out.text() ==
        "name,role,namespaces,proof\na,client,s,secret\n"
        R"({"name":null,"role":"anybody","namespaces":"*","proof":"nothing"})"
        "\n");
}

}  // namespace
}  // namespace nowcalls::admin
