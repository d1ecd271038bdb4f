#include "ledger/entity_table.h"

#include <string>
#include <type_traits>
#include <vector>

#include "base/hex.h"
#include "ledger/codec.h"
#include "ledger/history_entry.h"
#include "ledger/namespace_codec.h"
#include "ledger/rate_codec.h"

namespace nowcalls::ledger {
namespace {

// Keys of rules and namespaces may hold clients' texts: show their beginning.
constexpr size_t kShownKeyBytesMax = 32;

BadRecord BadRow(const StoredRow& row, Status why) {
  return {row.family,
          ToHex(row.key.substr(0, kShownKeyBytesMax)) +
              (row.key.size() > kShownKeyBytesMax ? "..." : ""),
          std::move(why)};
}

// Decoders take what they need of a row: its value, its key too, or all of it.
template <auto decode>
auto Decode(const StoredRow& row) {
  using Decoder = decltype(decode);
  if constexpr (std::is_invocable_v<Decoder, std::string_view>) {
    return decode(row.value);
  } else if constexpr (std::is_invocable_v<Decoder, std::string_view, std::string_view>) {
    return decode(row.key, row.value);
  } else {
    return decode(row.family, row.key, row.value);
  }
}

template <auto decode>
Status CheckKey(const StoredRow& row) {
  return decode(row.key).status();
}

template <auto decode>
Status Check(const StoredRow& row) {
  return Decode<decode>(row).status();
}

template <typename T>
Status ShowAll(const T& entity, EntityVisitor* visitor) {
  return visitor->OnEntity(&entity);
}

// A row may hold two rules.
Status ShowAll(const std::vector<RuleEntry>& rules, EntityVisitor* visitor) {
  for (const RuleEntry& rule : rules) NOWCALLS_RETURN_IF_ERROR(visitor->OnEntity(&rule));
  return {};
}

template <auto decode>
Status Show(const StoredRow& row, EntityVisitor* visitor) {
  const auto decoded = Decode<decode>(row);
  if (!decoded.ok()) return visitor->OnBadRecord(BadRow(row, decoded.status()));
  return ShowAll(*decoded, visitor);
}

// CheckHistory makes no entries: a block may hold 256 with texts.
Status CheckBlock(const StoredRow& row) { return CheckHistory(row.key, row.value); }

constexpr Field kSizedBy2{.size_bytes = 2};
constexpr Field kSizedBy4{.size_bytes = 4};

template <auto decode>
constexpr EntityKind Meta(std::string_view name, RecordType put, std::string_view key,
                          size_t value_bytes) {
  return {.name = name,
          .family = Family::kMeta,
          .put = put,
          .meta_key = key,
          .value = {.bytes = value_bytes},
          .check = Check<decode>,
          .show = Show<decode>};
}

}  // namespace

constinit const std::array<EntityKind, kEntityKindCount> kEntityKinds = {{
    Meta<DecodeFormat>("format", RecordType::kFormatSet, kFormatKey, kFormatBytes),
    Meta<DecodeClockMark>("clock mark", RecordType::kClockMarked, kClockKey, kClockMarkBytes),
    Meta<DecodeSeal>("seal", RecordType::kSealed, kSealKey, kSealBytes),
    Meta<DecodeWatermark>("watermark", RecordType::kWatermarkRaised, kWatermarkKey,
                          kWatermarkBytes),
    {.name = "namespace",
     .family = Family::kRules,
     .put = RecordType::kNamespaceSet,
     .deleted = RecordType::kNamespaceRemoved,
     .key = kSizedBy2,
     .value = kSizedBy2,
     .is_key = IsNamespaceKey,
     .check_key = CheckKey<DecodeNamespaceKey>,
     .check = Check<DecodeNamespace>,
     .show = Show<DecodeNamespace>},
    {.name = "rule",
     .family = Family::kRules,
     .put = RecordType::kRuleSet,
     .deleted = RecordType::kRuleRemoved,
     .key = kSizedBy2,
     .value = kSizedBy4,
     .check_key = CheckKey<DecodeRuleKey>,
     .check = Check<DecodeRules>,
     .show = Show<DecodeRules>},
    {.name = "session",
     .family = Family::kSessions,
     .put = RecordType::kSessionOpened,
     .deleted = RecordType::kSessionClosed,
     .key = {.bytes = kSessionKeyBytes},
     .value = kSizedBy2,
     .check_key = CheckKey<DecodeSessionKey>,
     .check = Check<DecodeSession>,
     .show = Show<DecodeSession>},
    {.name = "history",
     .family = Family::kHistory,
     .put = RecordType::kHistoryAdded,
     .deleted = RecordType::kHistoryDropped,
     .key = {.bytes = kHistoryKeyBytes},
     .value = kSizedBy4,
     .check_key = CheckKey<DecodeHistoryKey>,
     .check = CheckBlock,
     .show = Show<DecodeHistory>},
    {.name = "rate",
     .family = Family::kRates,
     .put = RecordType::kRateSet,
     .deleted = RecordType::kRateDropped,
     .key = {.bytes = kRateKeyBytes},
     .value = {.bytes = kRateValueBytes},
     .check_key = CheckKey<DecodeRateKey>,
     .check = Check<DecodeRate>,
     .show = Show<DecodeRate>},
    {.name = "token",
     .family = Family::kTokensShort,
     .check = Check<CheckToken>,
     .show = Show<DecodeToken>},
}};

const EntityKind* FindKind(const StoredRow& row) {
  // Tokens may be millions.
  if (IsTokenFamily(row.family)) return &KindOf<Token>();
  for (const EntityKind& kind : kEntityKinds) {
    if (kind.family != row.family) continue;
    if (row.family == Family::kMeta ? kind.meta_key == row.key
                                    : kind.is_key == nullptr || kind.is_key(row.key)) {
      return &kind;
    }
  }
  return nullptr;
}

Status ShowRow(const StoredRow& row, EntityVisitor* visitor) {
  const EntityKind* const kind = FindKind(row);
  if (kind != nullptr) return kind->show(row, visitor);
  return visitor->OnBadRecord(BadRow(row, Status::Corruption("the key is unknown")));
}

}  // namespace nowcalls::ledger
