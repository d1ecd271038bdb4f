// CommitBatch and ApplyRecords: golden bytes, what each record changes, and refused batches.
#include "ledger/commit_batch.h"

#include <doctest/doctest.h>

#include <functional>
#include <vector>

#include "base/hex.h"
#include "base/prng.h"
#include "ledger/codec.h"
#include "support/golden.h"
#include "unit/ledger/samples.h"

namespace nowcalls::ledger {
namespace {

using nowcalls::testing::GoldenPath;
using nowcalls::testing::LoadGolden;

const std::map<std::string, std::string>& Records() {
  static const std::map<std::string, std::string> vectors =
      LoadGolden(GoldenPath("ledger_records.hex"));
  return vectors;
}

const std::map<std::string, std::string>& Values() {
  static const std::map<std::string, std::string> vectors =
      LoadGolden(GoldenPath("ledger_values.hex"));
  return vectors;
}

// Writes each call as a line.
class TraceSink : public KeyValueSink {
 public:
  void Put(Family family, std::string_view key, std::string_view value) override {
    Add("put", family, key);
    lines_.back() += " = " + ToHex(value);
  }
  void SingleDelete(Family family, std::string_view key) override { Add("end", family, key); }
  void Delete(Family family, std::string_view key) override { Add("delete", family, key); }

  const std::vector<std::string>& lines() const { return lines_; }

 private:
  void Add(const char* what, Family family, std::string_view key) {
    lines_.push_back(std::string(what) + " " + std::string(FamilyName(family)) + " " + ToHex(key));
  }
  std::vector<std::string> lines_;
};

std::string Hex(const std::string& name) { return ToHex(Values().at(name)); }

std::string KeptKeyHex() {
  char key[kTokenKeyBytes];
  EncodeTokenKey(SampleTokenKept().key, key);
  return ToHex({key, sizeof(key)});
}

struct RecordCase {
  const char* name;
  std::function<void(CommitBatch*)> append;
  std::vector<std::string> changes;
};

void SetTwoRules(CommitBatch* batch) {
  const RuleEntry by_value = SampleRuleByValue();
  batch->RuleSet(SampleRule(), &by_value);
}

std::vector<RecordCase> RecordCases() {
  const TokenKey short_key = SampleToken().key;
  const TokenKey kept_key = SampleTokenKept().key;
  return {
      {"token_issued",
       [](CommitBatch* b) { b->TokenIssued(SampleToken()); },
       {"put tokens_short " + Hex("token_key") + " = " + Hex("token_value")}},
      {"token_kept",
       [=](CommitBatch* b) { b->TokenKept(short_key, SampleTokenKept()); },
       {"end tokens_short " + Hex("token_key"),
        "put tokens_medium " + KeptKeyHex() + " = " + Hex("token_value")}},
      {"token_ended",
       [=](CommitBatch* b) { b->TokenEnded(kept_key, EndReason::kReleased); },
       {"end tokens_medium " + KeptKeyHex()}},
      {"session_opened",
       [](CommitBatch* b) { b->SessionOpened(SampleSession()); },
       {"put sessions " + Hex("session_key") + " = " + Hex("session_value")}},
      {"session_closed",
       [](CommitBatch* b) { b->SessionClosed(SessionId(42)); },
       {"end sessions " + Hex("session_key")}},
      {"rule_set",
       [](CommitBatch* b) { b->RuleSet(SampleRule()); },
       {"put rules " + Hex("rule_key") + " = " + Hex("rule_value")}},
      {"rule_set_two",
       SetTwoRules,
       {"put rules " + Hex("rule_key") + " = " + Hex("rule_value_two")}},
      {"rule_removed",
       [](CommitBatch* b) { b->RuleRemoved("orders", FlowId(1001)); },
       {"delete rules " + Hex("rule_key")}},
      {"history_added",
       [](CommitBatch* b) { b->HistoryAdded(SampleHistoryBlock()); },
       {"put history " + Hex("history_key") + " = " + Hex("history_block")}},
      {"history_dropped",
       [](CommitBatch* b) { b->HistoryDropped(12); },
       {"end history " + Hex("history_key")}},
      {"namespace_set",
       [](CommitBatch* b) {
         b->NamespaceSet({"orders", kSampleSource});
       },
       {"put rules " + Hex("namespace_key") + " = " + Hex("namespace_value")}},
      {"namespace_removed",
       [](CommitBatch* b) { b->NamespaceRemoved("orders"); },
       {"delete rules " + Hex("namespace_key")}},
      {"keyed_token_issued",
       [](CommitBatch* b) { b->TokenIssued(SampleKeyedToken()); },
       {"put tokens_short " + Hex("token_key") + " = " + Hex("token_value_keyed")}},
      {"keyed_token_kept",
       [=](CommitBatch* b) {
         Token kept = SampleTokenKept();
         kept.param = SampleKeyedToken().param;
         b->TokenKept(short_key, kept);
       },
       {"end tokens_short " + Hex("token_key"),
        "put tokens_medium " + KeptKeyHex() + " = " + Hex("token_value_keyed")}},
      {"rate_set",
       [](CommitBatch* b) { b->RateSet(SampleRateBucket()); },
       {"put rates " + Hex("rate_key") + " = " + Hex("rate_value")}},
      {"rate_dropped",
       [](CommitBatch* b) { b->RateDropped(SampleRateBucket().key); },
       {"delete rates " + Hex("rate_key")}},
      {"format_set",
       [](CommitBatch* b) { b->FormatSet(SampleFormat()); },
       {"put default " + ToHex(kFormatKey) + " = " + Hex("format")}},
      {"clock_marked",
       [](CommitBatch* b) { b->ClockMarked(SampleClockMark()); },
       {"put default " + ToHex(kClockKey) + " = " + Hex("clock")}},
      {"watermark_raised",
       [](CommitBatch* b) { b->WatermarkRaised(kSampleMs + 4000); },
       {"put default " + ToHex(kWatermarkKey) + " = " + Hex("watermark")}},
  };
}

std::string SealChange() { return "put default " + ToHex(kSealKey) + " = " + Hex("seal"); }

// One record of each type, the seal last.
std::string WholeBatch() {
  CommitBatch batch;
  for (const RecordCase& c : RecordCases()) c.append(&batch);
  batch.Sealed(SampleSeal());
  return std::string(batch.bytes());
}

Status Apply(std::string_view records) {
  TraceSink sink;
  return ApplyRecords(records, &sink);
}

TEST_CASE("every record has its golden bytes and changes exactly its keys") {
  for (const RecordCase& c : RecordCases()) {
    CAPTURE(c.name);
    CommitBatch batch;
    c.append(&batch);
    CHECK(batch.records() == 1);
    CHECK(ToHex(batch.bytes()) == ToHex(Records().at(c.name)));
    batch.Sealed(SampleSeal());
    CHECK(ToHex(batch.bytes()) == ToHex(Records().at(c.name) + Records().at("sealed")));
    TraceSink sink;
    REQUIRE(ApplyRecords(batch.bytes(), &sink).ok());
    std::vector<std::string> expected = c.changes;
    expected.push_back(SealChange());
    CHECK(sink.lines() == expected);
  }
}

TEST_CASE("a batch counts its records, knows its number once sealed, and clears to new") {
  CommitBatch batch;
  CHECK(batch.empty());
  batch.TokenIssued(SampleToken());
  batch.TokenEnded(SampleToken().key, EndReason::kAdmin);
  CHECK_FALSE(batch.empty());
  CHECK_FALSE(batch.sealed());
  CHECK(batch.number() == 0);
  batch.Sealed(SampleSeal());
  CHECK(batch.sealed());
  CHECK(batch.number() == 3);
  CHECK(batch.records() == 3);
  batch.Clear();
  CHECK(batch.empty());
  CHECK_FALSE(batch.sealed());
  CHECK(batch.bytes().empty());
  batch.TokenIssued(SampleToken());
  CHECK(ToHex(batch.bytes()) == ToHex(Records().at("token_issued")));
}

TEST_CASE("a kept token that stays at its key leaves no record") {
  CommitBatch batch;
  batch.TokenKept(SampleToken().key, SampleToken());
  CHECK(batch.empty());
  CHECK(batch.bytes().empty());
}

TEST_CASE("every truncation of a batch is refused") {
  const std::string bytes = WholeBatch();
  REQUIRE(Apply(bytes).ok());
  for (size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    CHECK(Apply(std::string_view(bytes).substr(0, size)).code() == StatusCode::kCorruption);
  }
}

TEST_CASE("the seal is read from a batch's end, and nothing else is taken for it") {
  CommitBatch batch;
  batch.Sealed({.batch_number = 7, .next_fence = 8, .ledger_ms = 9}, 3);
  CHECK(SealOf(batch)->ledger_ms == 9);
  CHECK(SealOf(batch)->batch_number == 7);
  std::string bytes(batch.sealed_bytes().substr(0, kSealedBatchHeaderBytes));
  bytes += "\x09" + std::string(kSealBytes, '\0');
  SealBytes(7, 3, bytes.data(), bytes.size());
  CHECK(SealOf(*SealedBatch::Parse(bytes)).status().code() == StatusCode::kCorruption);
  bytes.resize(kSealedBatchHeaderBytes + 1);
  SealBytes(7, 3, bytes.data(), bytes.size());
  CHECK(SealOf(*SealedBatch::Parse(bytes)).status().code() == StatusCode::kCorruption);
}

TEST_CASE("anything behind the seal is refused") {
  const std::string bytes = WholeBatch();
  CHECK(Apply(bytes + '\0').message() == "bytes follow the seal");
  CHECK(Apply(bytes + Records().at("sealed")).message() == "bytes follow the seal");
  CHECK(Apply("").message() == "the batch ends without a seal");
  CHECK(Apply(Records().at("token_issued")).message() == "the batch ends without a seal");
}

TEST_CASE("unknown record types, families and reasons are refused") {
  const std::string& seal = Records().at("sealed");
  for (const int type : {0, 13, 14, 255}) {
    const std::string record(1, static_cast<char>(type));
    CHECK(Apply(record + seal).message() == "record type " + std::to_string(type) + " is unknown");
  }
  for (const int family : {0, 1, 2, 6, 7, 255}) {
    std::string issued = Records().at("token_issued");
    issued[1] = static_cast<char>(family);
    CHECK(Apply(issued + seal).message() == "token key: the family does not hold tokens");
    std::string ended = Records().at("token_ended");
    ended[1] = static_cast<char>(family);
    CHECK(Apply(ended + seal).message() == "token key: the family does not hold tokens");
  }
  for (const int reason : {0, 8, 255}) {
    std::string ended = Records().at("token_ended");
    ended.back() = static_cast<char>(reason);
    CHECK(Apply(ended + seal).message() == "end reason " + std::to_string(reason) + " is unknown");
  }
}

TEST_CASE("a kept token must keep its id and move") {
  const std::string& seal = Records().at("sealed");
  std::string other_id = Records().at("token_kept");
  other_id[17] ^= 1;
  CHECK(Apply(other_id + seal).message() == "a kept token changes its id");
  std::string unmoved = Records().at("token_kept");
  unmoved.replace(18, 17, unmoved.substr(1, 17));
  CHECK(Apply(unmoved + seal).message() == "a kept token does not move");
}

TEST_CASE("a record of a token with a parameter holds one, and no other record does") {
  const std::string& seal = Records().at("sealed");
  const std::string wrong = "the value of a token is not that of its record's type";
  std::string without = Records().at("keyed_token_issued").substr(0, 18);
  without += std::string("\0\x2d", 2) + Values().at("token_value");
  CHECK(Apply(without + seal).message() == wrong);
  const std::string with = Records().at("token_issued").substr(0, 18) +
                           Values().at("token_value_keyed").substr(0, kTokenValueBytes);
  CHECK_FALSE(Apply(with + seal).ok());
}

TEST_CASE("a batch with a changed byte is refused as corruption or still ends with its seal") {
  const std::string bytes = WholeBatch();
  Prng random(11);
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string changed = bytes;
    changed[random.Next() % changed.size()] = static_cast<char>(random.Next());
    TraceSink sink;
    const Status status = ApplyRecords(changed, &sink);
    if (!status.ok()) {
      // A format of the future is nobody's damage.
      CHECK((status.code() == StatusCode::kCorruption ||
             status.code() == StatusCode::kFailedPrecondition));
      CHECK_FALSE(status.message().empty());
      continue;
    }
    ++accepted;
    CHECK(sink.lines().back().starts_with("put default " + ToHex(kSealKey)));
  }
  CHECK(accepted > 0);
}

CommitBatch SampleSealed() {
  CommitBatch batch;
  batch.TokenEnded(SampleTokenKept().key, EndReason::kReleased);
  batch.Sealed(SampleSeal(), /*term=*/5);
  return batch;
}

TEST_CASE("a sealed batch has its golden bytes, and is read from them") {
  const CommitBatch batch = SampleSealed();
  const SealedBatch sealed(batch);
  CHECK(ToHex(sealed.bytes()) == ToHex(Records().at("sealed_batch")));
  CHECK(sealed.records() == batch.bytes());
  const Result<SealedBatch> read = SealedBatch::Parse(Records().at("sealed_batch"));
  REQUIRE(read.ok());
  CHECK(read->number() == 3);
  CHECK(read->term() == 5);
  CHECK(read->records() == batch.bytes());
  CHECK(read->bytes() == sealed.bytes());
}

TEST_CASE("every truncation, flip and addition of a sealed batch is refused") {
  const CommitBatch batch = SampleSealed();
  const std::string bytes(batch.sealed_bytes());
  for (size_t at = 0; at < bytes.size(); ++at) {
    CAPTURE(at);
    CHECK(SealedBatch::Parse(bytes.substr(0, at)).status().code() == StatusCode::kCorruption);
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    CHECK(SealedBatch::Parse(flipped).status().code() == StatusCode::kCorruption);
  }
  CHECK(SealedBatch::Parse(bytes + '\0').status().code() == StatusCode::kCorruption);
}

TEST_CASE("a batch that was cleared is sealed anew") {
  CommitBatch batch = SampleSealed();
  batch.Clear();
  CHECK(batch.term() == 0);
  batch.TokenEnded(SampleTokenKept().key, EndReason::kReleased);
  batch.Sealed(SampleSeal(), /*term=*/5);
  CHECK(batch.sealed_bytes() == SampleSealed().sealed_bytes());
}

}  // namespace
}  // namespace nowcalls::ledger
