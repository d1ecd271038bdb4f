// Which cluster a data directory is of, in writing, and by what etcd has.
#include "member/identity.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "support/process.h"
#include "support/temp_dir.h"

namespace nowcalls::member {
namespace {

const std::string kCluster(32, 'c');
const std::string kOther(32, 'd');

cluster::LogView View(uint64_t base, uint64_t first, uint64_t last) {
  return {.lineage = cluster::Lineage{.id = kCluster, .base = base, .term = 1},
          .first = first,
          .last = last};
}

Identity Of(const std::string& cluster, bool joined = true) {
  return {.member = "0123abcd", .cluster = cluster, .joined = joined};
}

Part Decide(const std::optional<Identity>& identity, uint64_t applied,
            const cluster::LogView& view) {
  const Result<Part> part = DecidePart(identity, applied, view, "/p");
  REQUIRE_MESSAGE(part.ok(), part.status().message());
  return *part;
}

std::string Refused(const std::optional<Identity>& identity, uint64_t applied,
                    const cluster::LogView& view) {
  const Result<Part> part = DecidePart(identity, applied, view, "/p");
  REQUIRE(part.status().code() == StatusCode::kCorruption);
  return part.status().message();
}

TEST_CASE("an identity is the same after a round trip, and replaced whole") {
  const testing::TempDir dir;
  CHECK_FALSE(ReadIdentity(dir.path())->has_value());
  REQUIRE(WriteIdentity(dir.path(), Of(kCluster, false)).ok());
  REQUIRE(WriteIdentity(dir.path(), Of(kCluster)).ok());
  CHECK(**ReadIdentity(dir.path()) == Of(kCluster));
  CHECK(testing::ReadFileToString(dir.Sub(kIdentityFile)).find("\"member\"") != std::string::npos);
}

TEST_CASE("a file that is no identity is told, and so is a place that takes none") {
  const testing::TempDir dir;
  for (const char* text : {"", "{", "7", R"({"member":"a","cluster":"b"})",
                           R"({"member":1,"cluster":"b","joined":true})"}) {
    testing::WriteStringToFile(dir.Sub(kIdentityFile), text);
    CHECK_MESSAGE(ReadIdentity(dir.path()).status().code() == StatusCode::kCorruption, text);
  }
  CHECK(WriteIdentity(dir.Sub("none"), Of(kCluster)).code() == StatusCode::kIoError);
}

TEST_CASE("where there is no cluster, a ledger may begin one, but for a member's") {
  CHECK(Decide({}, 0, {}) == Part::kBegin);
  CHECK(Decide({}, 7, {}) == Part::kBegin);
  CHECK(Decide(Of(kCluster, false), 7, {}) == Part::kBegin);
  CHECK(Refused(Of(kCluster), 7, {}).find("etcd has none below /p") != std::string::npos);
}

TEST_CASE("without a ledger that counts a member reads the log, or needs a copy") {
  for (const auto& identity : {std::optional<Identity>(), std::optional(Of(kOther))}) {
    CHECK(Decide(identity, 0, View(0, 0, 0)) == Part::kEnter);
    CHECK(Decide(identity, 0, View(0, 1, 9)) == Part::kEnter);
    CHECK(Decide(identity, 0, View(0, 2, 9)) == Part::kCopy);
    CHECK(Decide(identity, 0, View(5, 0, 0)) == Part::kCopy);
    CHECK(Decide(identity, 0, View(5, 6, 9)) == Part::kCopy);
  }
}

TEST_CASE("a member goes on where it ended, unless the log has forgotten that") {
  CHECK(Decide(Of(kCluster), 7, View(0, 1, 9)) == Part::kGoOn);
  CHECK(Decide(Of(kCluster), 9, View(0, 1, 9)) == Part::kGoOn);
  CHECK(Decide(Of(kCluster), 7, View(0, 8, 9)) == Part::kGoOn);
  CHECK(Decide(Of(kCluster), 7, View(0, 9, 9)) == Part::kCopy);
  CHECK(Decide(Of(kCluster), 7, View(7, 0, 0)) == Part::kGoOn);
  // Its own cluster, whose beginning it did not hear of.
  CHECK(Decide(Of(kCluster, false), 7, View(7, 0, 0)) == Part::kGoOn);
}

TEST_CASE("a ledger of another cluster, or of none, is refused and told") {
  CHECK(Refused({}, 7, View(0, 1, 9)).find("a single server's") != std::string::npos);
  CHECK(Refused(Of(kOther), 7, View(0, 1, 9)).find(kOther) != std::string::npos);
}

TEST_CASE("a log that is shorter than a member's ledger is refused") {
  CHECK(Refused(Of(kCluster), 10, View(0, 1, 9)).find("ends with batch 9") != std::string::npos);
  CHECK(Refused(Of(kCluster), 8, View(7, 0, 0)).find("ends with batch 7") != std::string::npos);
}

}  // namespace
}  // namespace nowcalls::member
