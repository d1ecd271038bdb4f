// Keys, values and commit records of the ledger: a decoder takes what the encoder writes, byte for
// byte, and refuses everything else.
//
// So for the log data of a batch and the slots of a witness.
//
// The first byte chooses the decoder. Keys of a fixed size come first, others behind their length
// in one byte.
#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "fuzz/targets.h"
#include "ledger/codec.h"
#include "ledger/commit_batch.h"
#include "ledger/entity_table.h"
#include "ledger/history_entry.h"
#include "ledger/namespace_codec.h"
#include "ledger/rate_codec.h"
#include "ledger/witness.h"

namespace nowcalls::fuzz {
namespace {

using ledger::Family;

// Takes what is applied, and nothing that does not fit its family.
class CheckingSink : public ledger::KeyValueSink {
 public:
  void Put(Family family, std::string_view key, std::string_view value) override {
    const ledger::StoredRow row{family, key, value};
    REQUIRE(ledger::FindKind(row) != nullptr);
    class Ignored : public ledger::EntityVisitor {
      Status OnEntity(const ledger::Entity& /*entity*/) override { return {}; }
    } ignored;
    REQUIRE(ledger::ShowRow(row, &ignored).ok());
  }
  void SingleDelete(Family family, std::string_view key) override {
    REQUIRE_FALSE(key.empty());
    REQUIRE(ledger::IsPutOnce(family));
    if (ledger::IsTokenFamily(family)) REQUIRE(ledger::DecodeTokenKey(family, key).ok());
  }
  void Delete(Family family, std::string_view key) override {
    REQUIRE_FALSE(key.empty());
    REQUIRE_FALSE(ledger::IsPutOnce(family));
  }
};

std::string_view Split(std::string_view* input, size_t size) {
  const std::string_view head = input->substr(0, size);
  input->remove_prefix(head.size());
  return head;
}

std::string_view SplitSized(std::string_view* input) {
  if (input->empty()) return {};
  const auto size = static_cast<uint8_t>(input->front());
  input->remove_prefix(1);
  return Split(input, size);
}

void Token(Family family, std::string_view input) {
  const std::string_view key = Split(&input, ledger::kTokenKeyBytes);
  const Result<ledger::Token> token = ledger::DecodeToken(family, key, input);
  if (!token.ok()) return;
  char again_key[ledger::kTokenKeyBytes];
  ledger::EncodeTokenKey(token->key, again_key);
  REQUIRE(std::string_view(again_key, sizeof(again_key)) == key);
  REQUIRE(ledger::EncodeTokenValue(*token) == input);
}

void Rate(std::string_view input) {
  const std::string_view key = Split(&input, ledger::kRateKeyBytes);
  const Result<ledger::RateBucket> bucket = ledger::DecodeRate(key, input);
  if (!bucket.ok()) return;
  char again_key[ledger::kRateKeyBytes];
  char again_value[ledger::kRateValueBytes];
  ledger::EncodeRateKey(bucket->key, again_key);
  ledger::EncodeRateValue(*bucket, again_value);
  REQUIRE(std::string_view(again_key, sizeof(again_key)) == key);
  REQUIRE(std::string_view(again_value, sizeof(again_value)) == input);
}

void Session(std::string_view input) {
  const std::string_view key = Split(&input, ledger::kSessionKeyBytes);
  const Result<ledger::Session> session = ledger::DecodeSession(key, input);
  if (!session.ok()) return;
  REQUIRE(ledger::EncodeSessionKey(session->id) == key);
  REQUIRE(ledger::EncodeSessionValue(*session) == input);
}

void Rule(std::string_view input) {
  const std::string_view key = SplitSized(&input);
  const Result<std::vector<ledger::RuleEntry>> rules = ledger::DecodeRules(key, input);
  if (!rules.ok()) return;
  const ledger::RuleEntry& rule = rules->front();
  REQUIRE(ledger::EncodeRuleKey(rule.name_space, rule.flow) == key);
  const std::string again = rules->size() == 1 ? ledger::EncodeRuleValue(rule.state, rule.json)
                                               : ledger::EncodeRuleValue(rule, rules->back());
  REQUIRE(again == input);
}

void Namespace(std::string_view input) {
  const std::string_view key = SplitSized(&input);
  const Result<ledger::NamespaceEntry> entry = ledger::DecodeNamespace(key, input);
  if (!entry.ok()) return;
  REQUIRE(ledger::EncodeNamespaceKey(entry->name_space) == key);
  REQUIRE(ledger::EncodeNamespaceValue(entry->source) == input);
}

void History(std::string_view input) {
  const std::string_view key = Split(&input, 8);
  const Result<ledger::HistoryBlock> block = ledger::DecodeHistory(key, input);
  REQUIRE(ledger::CheckHistory(key, input).ok() == block.ok());
  if (!block.ok()) return;
  REQUIRE(ledger::EncodeHistoryKey(block->front().sequence) == key);
  REQUIRE(ledger::EncodeHistoryValue(*block) == input);
}

void Meta(uint8_t which, std::string_view input) {
  if (which == 0) {
    const auto format = ledger::DecodeFormat(input);
    if (format.ok()) REQUIRE(ledger::EncodeFormat(*format) == input);
  } else if (which == 1) {
    const auto mark = ledger::DecodeClockMark(input);
    if (mark.ok()) REQUIRE(ledger::EncodeClockMark(*mark) == input);
  } else if (which == 2) {
    const auto seal = ledger::DecodeSeal(input);
    if (seal.ok()) REQUIRE(ledger::EncodeSeal(*seal) == input);
  } else {
    const auto watermark = ledger::DecodeWatermark(input);
    if (watermark.ok()) REQUIRE(ledger::EncodeWatermark(watermark->deadline_ms) == input);
  }
}

bool IsOldSlot(std::string_view bytes) { return bytes.starts_with('\1'); }

size_t SlotBytes(std::string_view bytes) {
  return IsOldSlot(bytes) ? ledger::kWitnessSlotBytesV1 : ledger::kWitnessSlotBytes;
}

// `bytes`, with a checksum that is right.
std::string SoundSlot(std::string_view bytes) {
  std::string slot(bytes.substr(0, SlotBytes(bytes) - sizeof(uint32_t)));
  AppendBigEndian(&slot, Crc32c(slot));
  return slot;
}

void WitnessSlot(std::string_view input) {
  for (const std::string& slot : {std::string(input), SoundSlot(input)}) {
    const auto witness = ledger::DecodeWitnessSlot(slot);
    if (!witness.has_value()) continue;
    const std::string again = ledger::EncodeWitnessSlot(*witness);
    if (!IsOldSlot(slot)) {
      REQUIRE(again == slot.substr(0, ledger::kWitnessSlotBytes));
      continue;
    }
    REQUIRE_FALSE(witness->unsynced);
    REQUIRE(witness->first_log == 0);
    REQUIRE(ledger::DecodeWitnessSlot(again) == witness);
  }
}

// Of two slots the later one that is sound, and in its place, counts.
void WitnessFile(std::string_view input) {
  std::string file(ledger::kWitnessFileBytes, '\0');
  std::optional<ledger::Witness> latest;
  for (size_t place = 0; place < ledger::kWitnessSlots; ++place) {
    const bool sound = !input.empty() && Split(&input, 1).front() % 4 != 0;
    const std::string_view bytes = Split(&input, ledger::kWitnessSlotBytes);
    const std::string slot = sound ? SoundSlot(bytes) : std::string(bytes);
    file.replace(place * ledger::kWitnessSlotStride, slot.size(), slot);
    const auto witness = ledger::DecodeWitnessSlot(slot);
    if (!witness.has_value() || witness->sequence % ledger::kWitnessSlots != place) continue;
    if (!latest.has_value() || witness->sequence > latest->sequence) latest = witness;
  }
  const ledger::WitnessFound found = ledger::DecodeWitnessFile(file);
  REQUIRE((found.witness == latest));
}

void LogData(std::string_view input) {
  const auto batch = ledger::DecodeLogData(input);
  if (batch.has_value()) REQUIRE(ledger::EncodeLogData(*batch) == input);
}

}  // namespace

void FuzzLedger(std::string_view input) {
  if (input.empty()) return;
  const uint8_t which = static_cast<uint8_t>(input.front()) % 16;
  input.remove_prefix(1);
  switch (which) {
    case 0: return Token(Family::kTokensShort, input);
    case 1: return Token(Family::kTokensMedium, input);
    case 2: return Token(Family::kTokensLong, input);
    case 3: return Session(input);
    case 4: return Rule(input);
    case 5: return Namespace(input);
    case 6: return History(input);
    case 11: {
      CheckingSink sink;
      static_cast<void>(ledger::ApplyRecords(input, &sink));
      return;
    }
    case 12: return WitnessSlot(input);
    case 13: return WitnessFile(input);
    case 14: return LogData(input);
    case 15: return Rate(input);
    default: return Meta(which - 7, input);
  }
}

}  // namespace nowcalls::fuzz
