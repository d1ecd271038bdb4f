// Changes of an access file: what is added, and that all else stays.
#include "access/access_edit.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "access/access_file.h"
#include "support/process.h"
#include "test_paths.h"

namespace nowcalls::access {
namespace {

const NewPrincipal kNew{.name = "new", .role = Role::kClient, .certificates = {"new.example"}};

// SHA-256 of "abc", as the file has it.
constexpr char kAbc[] = "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"";

TEST_CASE("a principal is added behind the others, with the fields that it has") {
  CHECK(*WithPrincipal("", "f", kNew) ==
        "[[principal]]\nname = \"new\"\nrole = \"client\"\ncertificates = [\"new.example\"]\n");
  const NewPrincipal full{.name = "a\"b\\c",
                          .role = Role::kObserver,
                          .namespaces = {"x", "y-*"},
                          .networks = {"10.0.0.0/8"},
                          .secret = DigestOf("abc")};
  const std::string before = "# ours\n" + *WithPrincipal("", "f", kNew) + "# the end";
  CHECK(*WithPrincipal(before, "f", full) ==
        before + "\n\n[[principal]]\nname = \"a\\\"b\\\\c\"\nrole = \"observer\"\n" +
            "namespaces = [\"x\", \"y-*\"]\nsecret_sha256 = " + kAbc +
            "\nnetworks = [\"10.0.0.0/8\"]\n");
}

TEST_CASE("a principal that would make the file wrong is not added") {
  const std::string before = *WithPrincipal("", "f", kNew);
  const Status twice = WithPrincipal(before, "f", kNew).status();
  CHECK(twice.code() == StatusCode::kAlreadyExists);
  CHECK(twice.message() == "f has a principal 'new' already");
  NewPrincipal other = kNew;
  other.name = "other";
  CHECK(WithPrincipal(before, "f", other).status().message() ==
        "f:9: principal 'other': certificates: 'new.example' is that of principal 'new', too; it "
        "can belong to one principal only");
  CHECK(WithPrincipal("x = 1\n", "f", kNew).status().message() ==
        "f:1: unknown key 'x'; the file has only [[principal]] and its fields");
}

std::string Rotated(const std::string& text, const std::string& name) {
  const Result<std::string> changed = WithSecret(text, "f", name, DigestOf("abc"));
  return changed.ok() ? *changed : changed.status().message();
}

TEST_CASE("a secret is added beside the others, and comments stay") {
  const std::string digest = "\"" + std::string(64, 'd') + "\"";
  const std::string head = "# \u00e9\n[[principal]]\nname = 'a' # \u00e9\nrole = 'client'\n";
  const auto secret = [&](const std::string& value) {
    return "secret_sha256 = " + value + " # s\n";
  };
  const std::string tail = "[[principal]]\nname = 'b'\nrole = 'client'\nnetworks = ['::/0']\n";
  const std::string lists[][2] = {
      {digest, std::string("[") + kAbc + ", " + digest + "]"},
      {"[" + digest + "]", std::string("[") + kAbc + ", " + digest + "]"},
      {"[ # \u00e9\n  " + digest + ",\n]",
       std::string("[") + kAbc + ",  # \u00e9\n  " + digest + ",\n]"}};
  for (const auto& [before, after] : lists) {
    CHECK(Rotated(head + secret(before) + tail, "a") == head + secret(after) + tail);
    CHECK(Rotated(tail + head + secret(before), "a") == tail + head + secret(after));
  }
  CHECK(Rotated(tail, "b") == std::string("[[principal]]\nsecret_sha256 = ") + kAbc +
                                  "\nname = 'b'\nrole = 'client'\nnetworks = ['::/0']\n");
}

TEST_CASE("the sample takes secrets until it has as many as are allowed") {
  std::string text = testing::ReadFileToString(NOWCALLS_SOURCE_DIR "/data/access/sample.toml");
  for (const char* secret : {"one", "other"}) {
    const auto changed = WithSecret(text, "f", "checkout", DigestOf(secret));
    REQUIRE(changed.ok());
    text = *changed;
  }
  const auto list = AccessList::Parse(text, "f");
  CHECK((*list)->FindByDigest(DigestOf("one"))->principal.name == "checkout");
  CHECK((*list)->FindByDigest(DigestOf("other"))->principal.name == "checkout");
  const Status full = WithSecret(text, "f", "checkout", DigestOf("third")).status();
  CHECK(full.code() == StatusCode::kResourceExhausted);
  CHECK(full.message() ==
        "f: principal 'checkout' has 4 secrets; remove the digest of one that is no longer used");
}

TEST_CASE("a secret is not added to a text that would mean something else then") {
  CHECK(Rotated("[[principal]]\nname = 'b'\nrole = 'client'\nnetworks = '::/0'\n", "c") ==
        "f has no principal 'c'");
  CHECK(WithSecret("", "f", "c", DigestOf("abc")).status().code() == StatusCode::kInvalidArgument);
  const std::string in_line = "principal = [{name = 'b', role = 'client', networks = '::/0'}]\n";
  const Status refused = WithSecret(in_line, "f", "b", DigestOf("abc")).status();
  CHECK(refused.code() == StatusCode::kFailedPrecondition);
  CHECK(refused.message() ==
        "f: the fields of principal 'b' must be lines of their own below [[principal]], so that "
        "one can be changed");
  // One that another has.
  const std::string taken =
      *WithPrincipal(*WithPrincipal("", "f", kNew), "f",
                     {.name = "b", .role = Role::kClient, .secret = DigestOf("abc")});
  CHECK_FALSE(WithSecret(taken, "f", "new", DigestOf("abc")).ok());
}

}  // namespace
}  // namespace nowcalls::access
