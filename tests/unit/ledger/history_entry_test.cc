// The history's keys and values against their golden bytes, and against what is nearly right.
#include "ledger/history_entry.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "base/hex.h"
#include "base/prng.h"
#include "support/golden.h"
#include "unit/ledger/samples.h"

namespace nowcalls::ledger {
namespace {

const std::map<std::string, std::string>& Golden() {
  static const std::map<std::string, std::string> vectors =
      testing::LoadGolden(testing::GoldenPath("ledger_values.hex"));
  return vectors;
}

HistoryEntry GreatestEntry() {
  HistoryEntry entry;
  entry.sequence = 12;
  entry.ended_ms = int64_t{1} << 62;
  entry.reason = EndReason::kAdmin;
  entry.token_id = TokenId(INT64_MAX);
  entry.flow = FlowId(INT64_MAX);
  entry.session = SessionId(UINT64_MAX);
  entry.count = INT32_MAX;
  entry.fence = Fence(UINT64_MAX);
  entry.issued_ms = entry.ended_ms;
  return entry;
}

std::string ProblemOf(std::string_view value) {
  const auto entry = DecodeHistory(Golden().at("history_key"), value);
  if (entry.ok()) return "ok";
  CHECK(entry.status().code() == StatusCode::kCorruption);
  return entry.status().message();
}

TEST_CASE("an entry of the history has its golden bytes, and they decode to it again") {
  CHECK(ToHex(EncodeHistoryKey(12)) == ToHex(Golden().at("history_key")));
  CHECK(ToHex(EncodeHistoryValue(SampleHistoryEntry())) == ToHex(Golden().at("history_value")));
  CHECK(ToHex(EncodeHistoryValue(GreatestEntry())) == ToHex(Golden().at("history_value_max")));
  const std::string& key = Golden().at("history_key");
  CHECK(*DecodeHistory(key, Golden().at("history_value")) == SampleHistoryEntry());
  CHECK(*DecodeHistory(key, Golden().at("history_value_max")) == GreatestEntry());
}

TEST_CASE("a truncated or extended entry is refused") {
  const std::string& value = Golden().at("history_value");
  for (size_t size = 0; size < value.size(); ++size) {
    CAPTURE(size);
    CHECK(ProblemOf(value.substr(0, size)) != "ok");
  }
  CHECK(ProblemOf("") == "history value: has 0 bytes");
  CHECK(ProblemOf(value + "x") == "history value: 83 bytes do not fit the lengths it states");
  const std::string& key = Golden().at("history_key");
  for (const std::string& bad : {std::string(), key.substr(1), key + "x"}) {
    CHECK(DecodeHistoryKey(bad).status().message() ==
          "history key: has " + std::to_string(bad.size()) + " bytes instead of 8");
  }
  CHECK(DecodeHistoryKey(std::string(8, '\0')).status().message() == "history key: sequence is 0");
}

TEST_CASE("every other version byte of an entry is refused and named") {
  for (int version = 0; version < 256; ++version) {
    std::string value = Golden().at("history_value");
    value[0] = static_cast<char>(version);
    CHECK(ProblemOf(value) == (version == 1 ? "ok"
                                            : "history value: version is " +
                                                  std::to_string(version) + " instead of 1"));
  }
}

TEST_CASE("only reasons that the history keeps are read back") {
  for (int reason = 0; reason < 256; ++reason) {
    CAPTURE(reason);
    std::string value = Golden().at("history_value");
    value[1] = static_cast<char>(reason);
    const bool kept = reason >= 2 && reason <= 6;
    CHECK(ProblemOf(value) == (kept ? "ok" : "history value: reason is none that is kept"));
  }
}

TEST_CASE("fields of an entry out of their range are refused by name") {
  const std::string zero8(8, '\0');
  const std::string negative8 = std::string(1, '\x80') + std::string(7, '\0');
  const struct {
    size_t offset;
    std::string bytes;
    const char* problem;
  } cases[] = {
      {2, negative8, "ended_ms is out of range"},
      {2, std::string("\x40\0\0\0\0\0\0\1", 8), "ended_ms is out of range"},
      {2, zero8, "issued_ms is not between 0 and ended_ms"},
      {10, zero8, "token_id is out of range"},
      {10, negative8, "token_id is out of range"},
      {18, zero8, "flow is not positive"},
      {18, negative8, "flow is not positive"},
      {26, zero8, "session is 0"},
      {34, std::string(4, '\0'), "count is out of range"},
      {34, std::string("\x80\0\0\0", 4), "count is out of range"},
      {38, zero8, "fence is 0"},
      {46, negative8, "issued_ms is not between 0 and ended_ms"},
  };
  for (const auto& c : cases) {
    std::string value = Golden().at("history_value");
    value.replace(c.offset, c.bytes.size(), c.bytes);
    CHECK(ProblemOf(value) == std::string("history value: ") + c.problem);
  }
}

TEST_CASE("texts of an entry that are not UTF-8 are refused by name") {
  const HistoryEntry sample = SampleHistoryEntry();
  const struct {
    const std::string& text;
    const char* problem;
  } cases[] = {{sample.name_space, "namespace is not UTF-8"},
               {sample.client_id, "client_id is not UTF-8"},
               {sample.note, "note is not UTF-8"}};
  for (const auto& c : cases) {
    std::string value = Golden().at("history_value");
    const size_t at = value.rfind(c.text);
    REQUIRE(at != std::string::npos);
    value[at] = '\xff';
    CHECK(ProblemOf(value) == std::string("history value: ") + c.problem);
  }
}

TEST_CASE("texts of an entry at their longest fit, and one byte more is refused") {
  HistoryEntry entry = SampleHistoryEntry();
  entry.name_space = std::string(128, 'n');
  entry.client_id = std::string(128, 'c');
  entry.note = std::string(256, 'r');
  const std::string value = EncodeHistoryValue(entry);
  CHECK(*DecodeHistory(EncodeHistoryKey(12), value) == entry);
  std::string longer = value;
  longer.insert(55, 1, 'n');
  longer[54] = static_cast<char>(129);
  CHECK(ProblemOf(longer) == "history value: namespace is too long");
  longer = value;
  longer.insert(184, 1, 'c');
  longer[183] = static_cast<char>(129);
  CHECK(ProblemOf(longer) == "history value: client_id is too long");
  longer = value + "r";
  longer[313] = 1;
  CHECK(ProblemOf(longer) == "history value: note is too long");
}

TEST_CASE("whatever is accepted as an entry encodes to the same bytes again") {
  Prng random(20240608);
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string value = Golden().at("history_value");
    const size_t changes = 1 + random.Next() % 3;
    for (size_t i = 0; i < changes; ++i) {
      value[random.Next() % value.size()] = static_cast<char>(random.Next());
    }
    const auto entry = DecodeHistory(Golden().at("history_key"), value);
    if (!entry.ok()) continue;
    ++accepted;
    CHECK(ToHex(EncodeHistoryValue(*entry)) == ToHex(value));
  }
  CHECK(accepted > 0);
}

TEST_CASE("released and cancelled tokens are not kept in the history, all others are") {
  std::string kept;
  for (int reason = 1; reason < kEndReasonCount; ++reason) {
    const auto end = static_cast<EndReason>(reason);
    if (IsKeptInHistory(end)) kept += std::string(EndReasonName(end)) + " ";
  }
  CHECK(kept == "released_late client_offline resource_timeout rule_removed admin ");
}

}  // namespace
}  // namespace nowcalls::ledger
