#include "store/show_rows.h"

#include <algorithm>
#include <array>

#include "base/hex.h"
#include "ledger/codec.h"
#include "ledger/namespace_codec.h"
#include "ledger/rate_codec.h"

namespace nowcalls::store {
namespace {

using ledger::Family;

// Keys of rules and namespaces may hold clients' texts: show their beginning.
constexpr size_t kShownKeyBytesMax = 32;
constexpr std::array<std::string_view, 4> kMetaKeys = {ledger::kFormatKey, ledger::kClockKey,
                                                       ledger::kSealKey, ledger::kWatermarkKey};

std::string ShownKey(std::string_view key) {
  return ToHex(key.substr(0, kShownKeyBytesMax)) + (key.size() > kShownKeyBytesMax ? "..." : "");
}

// Hands the decoded value to `show`, or the failure to OnBadRecord.
template <typename T, typename Show>
Status ShowDecoded(Family family, std::string_view key, const Result<T>& decoded,
                   LedgerVisitor* visitor, Show show) {
  if (!decoded.ok()) {
    return visitor->OnBadRecord({family, ShownKey(key), decoded.status()});
  }
  return (visitor->*show)(*decoded);
}

Status ShowRules(std::string_view key, std::string_view value, LedgerVisitor* visitor) {
  const Result<std::vector<ledger::RuleEntry>> rules = ledger::DecodeRules(key, value);
  if (!rules.ok()) return visitor->OnBadRecord({Family::kRules, ShownKey(key), rules.status()});
  for (const ledger::RuleEntry& rule : *rules) NOWCALLS_RETURN_IF_ERROR(visitor->OnRule(rule));
  return {};
}

Status ShowUnknown(Family family, std::string_view key, const char* problem,
                   LedgerVisitor* visitor) {
  return visitor->OnBadRecord({family, ShownKey(key), Status::Corruption(problem)});
}

}  // namespace

Status ShowRow(Family family, std::string_view key, std::string_view value,
               LedgerVisitor* visitor) {
  switch (family) {
    case Family::kRules:
      if (ledger::IsNamespaceKey(key)) {
        return ShowDecoded(family, key, ledger::DecodeNamespace(key, value), visitor,
                           &LedgerVisitor::OnNamespace);
      }
      return ShowRules(key, value, visitor);
    case Family::kSessions:
      return ShowDecoded(family, key, ledger::DecodeSession(key, value), visitor,
                         &LedgerVisitor::OnSession);
    case Family::kTokensShort:
    case Family::kTokensMedium:
    case Family::kTokensLong:
      return ShowDecoded(family, key, ledger::DecodeToken(family, key, value), visitor,
                         &LedgerVisitor::OnToken);
    case Family::kHistory:
      return ShowDecoded(family, key, ledger::DecodeHistory(key, value), visitor,
                         &LedgerVisitor::OnHistory);
    case Family::kRates:
      return ShowDecoded(family, key, ledger::DecodeRate(key, value), visitor,
                         &LedgerVisitor::OnRate);
    case Family::kMeta: break;
  }
  return ShowUnknown(family, key, "nothing is stored in this family", visitor);
}

void MetaRows::Add(std::string_view key, std::string_view value) { rows_.emplace_back(key, value); }

const std::string* MetaRows::Find(std::string_view key) const {
  for (const Row& row : rows_) {
    if (row.first == key) return &row.second;
  }
  return nullptr;
}

Status MetaRows::Show(LedgerVisitor* visitor) const {
  const auto show = [&](std::string_view key, auto decode, auto member) -> Status {
    const std::string* value = Find(key);
    if (value == nullptr) return {};
    return ShowDecoded(Family::kMeta, key, decode(*value), visitor, member);
  };
  // A missing format record has no key to name; after Ok the other rows still follow.
  if (Find(ledger::kFormatKey) == nullptr) {
    NOWCALLS_RETURN_IF_ERROR(visitor->OnBadRecord(
        {Family::kMeta, "", Status::Corruption("the ledger has no format record")}));
  }
  NOWCALLS_RETURN_IF_ERROR(
      show(ledger::kFormatKey, ledger::DecodeFormat, &LedgerVisitor::OnFormat));
  NOWCALLS_RETURN_IF_ERROR(
      show(ledger::kClockKey, ledger::DecodeClockMark, &LedgerVisitor::OnClock));
  NOWCALLS_RETURN_IF_ERROR(show(ledger::kSealKey, ledger::DecodeSeal, &LedgerVisitor::OnSeal));
  NOWCALLS_RETURN_IF_ERROR(
      show(ledger::kWatermarkKey, ledger::DecodeWatermark, &LedgerVisitor::OnWatermark));
  // Unknown keys come last: a later version may have written them.
  for (const auto& [key, value] : rows_) {
    bool known = false;
    for (const std::string_view meta_key : kMetaKeys) known = known || key == meta_key;
    if (known) continue;
    NOWCALLS_RETURN_IF_ERROR(ShowUnknown(Family::kMeta, key, "the key is unknown", visitor));
  }
  return {};
}

int64_t MetaRows::WatermarkMs() const {
  const std::string* value = Find(ledger::kWatermarkKey);
  const std::string* sealed = Find(ledger::kSealKey);
  if (value == nullptr || sealed == nullptr) return 0;
  const Result<int64_t> watermark_ms = ledger::DecodeWatermark(*value);
  const Result<ledger::Seal> seal = ledger::DecodeSeal(*sealed);
  if (!watermark_ms.ok() || !seal.ok()) return 0;
  // A watermark of the future comes from a clock that was set back since, and proves nothing.
  return *watermark_ms <= seal->ledger_ms ? *watermark_ms : 0;
}

}  // namespace nowcalls::store
