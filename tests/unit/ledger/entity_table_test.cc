// The table of entities: rows find their kind, and FORMAT.md has the records of the table.
#include "ledger/entity_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/hex.h"
#include "ledger/codec.h"
#include "support/golden.h"
#include "test_paths.h"
#include "unit/ledger/samples.h"

namespace nowcalls::ledger {
namespace {

using nowcalls::testing::GoldenPath;
using nowcalls::testing::LoadGolden;

const std::string& GoldenValue(const std::string& name) {
  static const auto vectors = LoadGolden(GoldenPath("ledger_values.hex"));
  return vectors.at(name);
}

std::string FormatText() {
  std::ostringstream text;
  text << std::ifstream(NOWCALLS_SOURCE_DIR "/src/ledger/FORMAT.md").rdbuf();
  return text.str();
}

// A golden row of each kind.
struct RowOfKind {
  const char* kind;
  StoredRow row;
};

std::vector<RowOfKind> Rows() {
  return {
      {"format", {Family::kMeta, kFormatKey, GoldenValue("format")}},
      {"clock mark", {Family::kMeta, kClockKey, GoldenValue("clock")}},
      {"seal", {Family::kMeta, kSealKey, GoldenValue("seal")}},
      {"watermark", {Family::kMeta, kWatermarkKey, GoldenValue("watermark")}},
      {"namespace", {Family::kRules, GoldenValue("namespace_key"), GoldenValue("namespace_value")}},
      {"rule", {Family::kRules, GoldenValue("rule_key"), GoldenValue("rule_value_two")}},
      {"session", {Family::kSessions, GoldenValue("session_key"), GoldenValue("session_value")}},
      {"history", {Family::kHistory, GoldenValue("history_key"), GoldenValue("history_value")}},
      {"rate", {Family::kRates, GoldenValue("rate_key"), GoldenValue("rate_value")}},
      {"token", {Family::kTokensLong, GoldenValue("token_key"), GoldenValue("token_value_keyed")}}};
}

// The kinds of what is shown, and the places of what is bad.
class Recorder : public EntityVisitor {
 public:
  Status OnEntity(const Entity& entity) override {
    seen.emplace_back(KindOf(entity).name);
    return {};
  }
  Status OnBadRecord(const BadRecord& record) override {
    bad.push_back(record.WithPlace().message());
    return {};
  }

  std::vector<std::string> seen;
  std::vector<std::string> bad;
};

TEST_CASE("a family has its number's row, and a place in the order of loading") {
  for (size_t i = 0; i < kFamilyCount; ++i) {
    CHECK(kFamilies[i].family == static_cast<Family>(i));
    CHECK(std::count(kLoadOrder.begin(), kLoadOrder.end(), kFamilies[i].family) == 1);
  }
}

TEST_CASE("entities come in the order in which their families are loaded") {
  const auto place = [](const EntityKind& kind) {
    return std::find(kLoadOrder.begin(), kLoadOrder.end(), kind.family);
  };
  CHECK(std::is_sorted(kEntityKinds.begin(), kEntityKinds.end(),
                       [&](const auto& a, const auto& b) { return place(a) < place(b); }));
}

TEST_CASE("a row of each kind is shown as an entity of it, two rules as two") {
  REQUIRE(Rows().size() == kEntityKindCount);
  for (const auto& named : Rows()) {
    const char* const name = named.kind;
    const auto& row = named.row;
    CAPTURE(name);
    const EntityKind* const kind = FindKind(row);
    REQUIRE(kind != nullptr);
    CHECK(kind->name == name);
    CHECK(kind->check(row).ok());
    if (kind->deleted.has_value()) CHECK(kind->check_key(row).ok());
    Recorder recorder;
    REQUIRE(ShowRow(row, &recorder).ok());
    CHECK(recorder.seen == std::vector<std::string>(std::string(name) == "rule" ? 2 : 1, name));
    CHECK(recorder.bad.empty());
  }
}

TEST_CASE("a row that does not decode is told with its family, its key and the decoder's words") {
  for (auto named : Rows()) {
    const char* const name = named.kind;
    auto& row = named.row;
    CAPTURE(name);
    row.value.remove_suffix(row.value.size() - 1);
    const Status why = FindKind(row)->check(row);
    REQUIRE(why.code() == StatusCode::kCorruption);
    Recorder recorder;
    REQUIRE(ShowRow(row, &recorder).ok());
    CHECK(recorder.seen.empty());
    REQUIRE(recorder.bad.size() == 1);
    CHECK(recorder.bad[0] ==
          std::string(FamilyName(row.family)) + ", key " + ToHex(row.key) + ": " + why.message());
  }
}

TEST_CASE("of a long key the beginning is told, and a meta key that is unknown") {
  Recorder recorder;
  const std::string key(40, 'k');
  REQUIRE(ShowRow({Family::kRules, key, "v"}, &recorder).ok());
  REQUIRE(ShowRow({Family::kMeta, "seat", "v"}, &recorder).ok());
  CHECK(recorder.bad[0].starts_with("rules, key " + ToHex(key.substr(0, 32)) + "...: rule key: "));
  CHECK(recorder.bad[1] == "default, key 73656174: the key is unknown");
}

TEST_CASE("the failure of a visitor ends a row with two rules") {
  struct Refusing : EntityVisitor {
    Status OnEntity(const Entity& /*entity*/) override {
      ++seen;
      return Status::ResourceExhausted("enough");
    }
    int seen = 0;
  } refusing;
  const StoredRow row{Family::kRules, GoldenValue("rule_key"), GoldenValue("rule_value_two")};
  CHECK(ShowRow(row, &refusing).ToString() == "resource_exhausted: enough");
  CHECK(refusing.seen == 1);
}

TEST_CASE("FORMAT.md lists each record with what it does to its key") {
  const std::string format = FormatText();
  std::set<RecordType> numbers;
  // As "    0x16 rate_set         rate-key | rate-value                  put".
  const auto check = [&](RecordType type, const std::string& operation) {
    CHECK(numbers.insert(type).second);
    const auto number = static_cast<char>(type);
    const size_t at = format.find("\n    0x" + ToHex({&number, 1}) + " ");
    REQUIRE_MESSAGE(at != std::string::npos, "record ", static_cast<int>(type));
    const std::string line = format.substr(at + 1, format.find('\n', at + 1) - at - 1);
    CHECK_MESSAGE(line.ends_with(" " + operation), line);
  };
  for (const EntityKind& kind : kEntityKinds) {
    CAPTURE(kind.name);
    if (kind.put.has_value()) check(*kind.put, "put");
    if (!kind.deleted.has_value()) continue;
    check(*kind.deleted, IsPutOnce(kind.family) ? "single-delete" : "delete");
  }
}

}  // namespace
}  // namespace nowcalls::ledger
