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

const std::map<std::string, std::string>& GoldenEntries() {
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

std::string ProblemOf(std::string_view value,
                      std::string_view key = GoldenEntries().at("history_key")) {
  const auto block = DecodeHistory(key, value);
  CHECK(CheckHistory(key, value).ToString() == block.status().ToString());
  if (block.ok()) return "ok";
  CHECK(block.status().code() == StatusCode::kCorruption);
  return block.status().message();
}

std::string ValueOf(const HistoryEntry& entry) { return EncodeHistoryValue({&entry, 1}); }

// Entries 12 to 11 + `entries`.
HistoryBlock BlockOf(size_t entries) {
  HistoryBlock block(entries, SampleHistoryEntry());
  for (size_t i = 0; i < entries; ++i) block[i].sequence += i;
  return block;
}

TEST_CASE("an entry of the history has its golden bytes, and they decode to it again") {
  CHECK(ToHex(EncodeHistoryKey(12)) == ToHex(GoldenEntries().at("history_key")));
  CHECK(ToHex(ValueOf(SampleHistoryEntry())) == ToHex(GoldenEntries().at("history_value")));
  CHECK(ToHex(ValueOf(GreatestEntry())) == ToHex(GoldenEntries().at("history_value_max")));
  const std::string& key = GoldenEntries().at("history_key");
  CHECK(*DecodeHistory(key, GoldenEntries().at("history_value")) ==
        HistoryBlock{SampleHistoryEntry()});
  CHECK(*DecodeHistory(key, GoldenEntries().at("history_value_max")) ==
        HistoryBlock{GreatestEntry()});
}

TEST_CASE("a block of entries has its golden bytes, and they decode to it again") {
  const std::string& value = GoldenEntries().at("history_block");
  CHECK(ToHex(EncodeHistoryValue(SampleHistoryBlock())) == ToHex(value));
  CHECK(*DecodeHistory(GoldenEntries().at("history_key"), value) == SampleHistoryBlock());
  for (const size_t entries : {1, 2, 3, 255, 256}) {
    const HistoryBlock block = BlockOf(entries);
    const std::string encoded = EncodeHistoryValue(block);
    CHECK(encoded.size() == HistoryFixedBytes(entries) + entries * (6 + 10 + 8));
    CHECK(*DecodeHistory(EncodeHistoryKey(12), encoded) == block);
  }
}

TEST_CASE(
    "a block of no, one or too many entries is refused, and so is a number that is not theirs") {
  const std::string& golden = GoldenEntries().at("history_block");
  const std::string bounds = "history value: number of entries is not between 2 and 256";
  for (const int entries : {0, 1, 257, 65535}) {
    std::string value = golden;
    value[1] = static_cast<char>(entries >> 8);
    value[2] = static_cast<char>(entries);
    CHECK(ProblemOf(value) == bounds);
  }
  CHECK(ProblemOf(golden.substr(0, 1)) == bounds);
  CHECK(ProblemOf(golden.substr(0, 2)) == bounds);
  for (const char entries : {'\3', '\4'}) {
    std::string value = golden;
    value[2] = entries;
    CHECK(ProblemOf(value) == "history value: 157 bytes do not fit the lengths it states");
  }
  std::string more = EncodeHistoryValue(BlockOf(256));
  more += more.substr(more.size() - 81);
  CHECK(ProblemOf(more).ends_with(" bytes do not fit the lengths it states"));
  more[2] = '\1';
  CHECK(ProblemOf(more) == bounds);
}

TEST_CASE("a block with parameters has its golden bytes, and they decode to it again") {
  const std::string& key = GoldenEntries().at("history_key");
  const std::string& value = GoldenEntries().at("history_block_keyed");
  CHECK(ToHex(EncodeHistoryValue(SampleKeyedHistoryBlock())) == ToHex(value));
  CHECK(*DecodeHistory(key, value) == SampleKeyedHistoryBlock());
  for (size_t size = 0; size < value.size(); ++size) {
    CAPTURE(size);
    CHECK(ProblemOf(value.substr(0, size)) != "ok");
  }
  CHECK(ProblemOf(value + "x") != "ok");
  // One entry takes the same layout.
  const HistoryBlock one(1, SampleKeyedHistoryBlock()[0]);
  const std::string of_one = EncodeHistoryValue(one);
  CHECK(of_one[0] == 3);
  CHECK(*DecodeHistory(key, of_one) == one);
}

TEST_CASE("a block says that it has parameters only if it has") {
  std::string value = EncodeHistoryValue({SampleKeyedHistoryBlock().data(), 1});
  value.resize(value.size() - 11);
  CHECK(ProblemOf(value + '\xff') ==
        "history value: no entry has a parameter, but the version says so");
  value[1] = value[2] = 0;
  CHECK(ProblemOf(value + '\xff') == "history value: number of entries is not between 1 and 256");
}

TEST_CASE("a block with an instance has its golden bytes, and they decode to it again") {
  const std::string& key = GoldenEntries().at("history_key");
  const std::string& value = GoldenEntries().at("history_block_marked");
  CHECK(ToHex(EncodeHistoryValue(SampleMarkedHistoryBlock())) == ToHex(value));
  CHECK(*DecodeHistory(key, value) == SampleMarkedHistoryBlock());
  for (size_t size = 0; size < value.size(); ++size) {
    CAPTURE(size);
    CHECK(ProblemOf(value.substr(0, size)) != "ok");
  }
  CHECK(ProblemOf(value + "x") != "ok");
}

TEST_CASE("a release in time is an entry if its call failed, and has its golden bytes") {
  HistoryEntry entry = SampleHistoryEntry();
  entry.reason = EndReason::kReleased;
  entry.outcome = CallOutcome::kFailed;
  entry.note = "";
  const std::string& value = GoldenEntries().at("history_value_failed");
  CHECK(ToHex(ValueOf(entry)) == ToHex(value));
  CHECK(*DecodeHistory(GoldenEntries().at("history_key"), value) == HistoryBlock{entry});
  std::string admin = value;
  admin[3] = '\6';
  CHECK(ProblemOf(admin) == "history value: outcome is of no release");
  CHECK(ProblemOf(value.substr(0, value.size() - 1) + '\3') == "history value: outcome is unknown");
  CHECK(ProblemOf(value.substr(0, value.size() - 1) + '\0') ==
        "history value: an entry has a mark that is not known, or of nothing");
  std::string late = value;
  late[3] = '\2';
  CHECK(ProblemOf(late) == "ok");
}

TEST_CASE("a mark that is not known, or of nothing, is refused") {
  HistoryEntry entry = SampleHistoryEntry();
  entry.instance = 7;
  const std::string value = ValueOf(entry);
  const std::string entry_only = value.substr(0, value.size() - 9);
  const std::string problem = "history value: an entry has a mark that is not known, or of nothing";
  CHECK(ProblemOf(value) == "ok");
  CHECK(ProblemOf(entry_only + '\x80') == problem);
  CHECK(ProblemOf(entry_only + '\2' + std::string(8, '\0')) == problem);
  CHECK(ProblemOf(entry_only + '\2' + std::string(8, '\xff')) ==
        "history value: instance is out of range");
  CHECK(ProblemOf(entry_only + '\0') ==
        "history value: no entry needs marks, but the version says so");
}

TEST_CASE("a truncated or extended block is refused, also between two entries") {
  const std::string& value = GoldenEntries().at("history_block");
  for (size_t size = 0; size < value.size(); ++size) {
    CAPTURE(size);
    CHECK(ProblemOf(value.substr(0, size)) != "ok");
  }
  CHECK(ProblemOf(value + "x") == "history value: 158 bytes do not fit the lengths it states");
}

TEST_CASE("what is wrong with an entry of a block is told with its number") {
  std::string value = GoldenEntries().at("history_block");
  value[3 + 81] = '\1';
  CHECK(ProblemOf(value) == "history value: entry 13: reason is none that is kept");
  value[3] = '\1';
  CHECK(ProblemOf(value) == "history value: entry 12: reason is none that is kept");
}

TEST_CASE("sequences end where fences do") {
  constexpr uint64_t kLast = uint64_t{1} << 62;
  const std::string& one = GoldenEntries().at("history_value");
  const std::string& two = GoldenEntries().at("history_block");
  CHECK(ProblemOf(one, EncodeHistoryKey(kLast)) == "ok");
  CHECK(ProblemOf(two, EncodeHistoryKey(kLast - 1)) == "ok");
  const std::string problem = "history key: sequence is too great";
  CHECK(ProblemOf(one, EncodeHistoryKey(kLast + 1)) == problem);
  CHECK(ProblemOf(two, EncodeHistoryKey(kLast)) == problem);
  CHECK(ProblemOf(two, EncodeHistoryKey(UINT64_MAX)) == problem);
}

TEST_CASE("a truncated or extended entry is refused") {
  const std::string& value = GoldenEntries().at("history_value");
  for (size_t size = 0; size < value.size(); ++size) {
    CAPTURE(size);
    CHECK(ProblemOf(value.substr(0, size)) != "ok");
  }
  CHECK(ProblemOf("") == "history value: has 0 bytes");
  CHECK(ProblemOf(value + "x") == "history value: 83 bytes do not fit the lengths it states");
  const std::string& key = GoldenEntries().at("history_key");
  for (const std::string& bad : {std::string(), key.substr(1), key + "x"}) {
    CHECK(DecodeHistoryKey(bad).status().message() ==
          "history key: has " + std::to_string(bad.size()) + " bytes instead of 8");
  }
  CHECK(DecodeHistoryKey(std::string(8, '\0')).status().message() == "history key: sequence is 0");
}

TEST_CASE("every other version byte of an entry is refused and named") {
  for (int version = 0; version < 256; ++version) {
    std::string value = GoldenEntries().at("history_value");
    value[0] = static_cast<char>(version);
    if (version >= 2 && version <= 4) continue;
    CHECK(ProblemOf(value) == (version == 1
                                   ? "ok"
                                   : "history value: version is " + std::to_string(version) +
                                         " instead of 1, 2, 3 or 4"));
  }
}

TEST_CASE("only reasons that the history keeps are read back") {
  for (int reason = 0; reason < 256; ++reason) {
    CAPTURE(reason);
    std::string value = GoldenEntries().at("history_value");
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
    std::string value = GoldenEntries().at("history_value");
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
    std::string value = GoldenEntries().at("history_value");
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
  const std::string value = ValueOf(entry);
  CHECK(*DecodeHistory(EncodeHistoryKey(12), value) == HistoryBlock{entry});
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
    const char* const kinds[] = {"history_value", "history_block", "history_block_keyed"};
    std::string value = GoldenEntries().at(kinds[round % 3]);
    const size_t changes = 1 + random.Next() % 3;
    for (size_t i = 0; i < changes; ++i) {
      value[random.Next() % value.size()] = static_cast<char>(random.Next());
    }
    const auto block = DecodeHistory(GoldenEntries().at("history_key"), value);
    if (!block.ok()) continue;
    ++accepted;
    CHECK(ToHex(EncodeHistoryValue(*block)) == ToHex(value));
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
