// Claims and lineages as JSON, and values that are neither.
#include "cluster/records.h"

#include <doctest/doctest.h>

#include <string>

namespace nowcalls::cluster {
namespace {

const std::string kId(32, 'a');

TEST_CASE("records are the same after a round trip") {
  const Claim claim{.nonce = kId, .term = ~0ull, .member = "one", .address = "h:1"};
  CHECK(claim.ToJson() ==
        R"({"nonce":")" + kId + R"(","term":18446744073709551615,"member":"one","address":"h:1"})");
  CHECK(*Claim::FromJson(claim.ToJson()) == claim);
  const Lineage lineage{.id = kId, .base = 7, .term = 8, .format = "00ff", .secret = "s"};
  CHECK(lineage.ToJson() ==
        R"({"id":")" + kId + R"(","base":7,"term":8,"format":"00ff","secret":"s"})");
  CHECK(*Lineage::FromJson(lineage.ToJson()) == lineage);
  const MemberRecord member{.member = "0a",
                            .address = "h:1",
                            .version = "1",
                            .leads = true,
                            .applied = 9,
                            .synced = 8,
                            .lag = 3};
  CHECK(member.ToJson() ==
        R"({"member":"0a","address":"h:1","version":"1","leads":true,"applied":9,"synced":8,)"
        R"("lag":3})");
  CHECK(*MemberRecord::FromJson(member.ToJson()) == member);
}

TEST_CASE("members that a later version added are passed over") {
  CHECK(Lineage::FromJson(R"({"id":")" + kId +
                          R"(","base":7,"term":8,"format":"","secret":"","more":[1]})")
            .ok());
}

TEST_CASE("a value that is no record is told") {
  const std::string id = R"("id":")" + kId + "\"";
  const std::string deep(1'000'000, '[');
  const std::string long_one = "{" + id + R"(,"base":1,"term":1,"format":"","secret":"","more":")" +
                               std::string(8'192, 'x') + "\"}";
  const std::string texts[] = {deep,
                               long_one,
                               "",
                               "7",
                               "{",
                               "{}",
                               R"({"id":"short","base":1,"term":1,"format":"","secret":""})",
                               "{" + id + R"(,"base":-1,"term":1,"format":"","secret":""})",
                               "{" + id + R"(,"base":1.5,"term":1,"format":"","secret":""})",
                               "{" + id + R"(,"base":"1","term":1,"format":"","secret":""})",
                               "{" + id + R"(,"base":1,"format":"","secret":""})",
                               "{" + id + R"(,"base":1,"term":1})"};
  for (const std::string& text : texts) {
    CHECK_MESSAGE(Lineage::FromJson(text).status().code() == StatusCode::kCorruption, text);
  }
  CHECK(Lineage::FromJson("7").status().message() ==
        "the key 'cluster' in etcd has a value that names no cluster");
  const std::string whole = "{" + id + R"(,"base":1,"term":1,"format":"","secret":"")";
  CHECK(Lineage::FromJson(whole + "}").ok());
  const Claim without{.nonce = kId, .term = 0, .member = "one", .address = "h:1"};
  CHECK(Claim::FromJson(without.ToJson()).status().message() ==
        "the key 'writer' in etcd has a value that is no claim");
  Claim longest{.nonce = kId, .term = 1, .member = std::string(1024, 'm'), .address = ""};
  CHECK(Claim::FromJson(longest.ToJson()).ok());
  longest.member += 'm';
  CHECK_FALSE(Claim::FromJson(longest.ToJson()).ok());
}

}  // namespace
}  // namespace nowcalls::cluster
