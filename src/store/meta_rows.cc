#include "store/meta_rows.h"

#include "ledger/codec.h"
#include "ledger/entity_table.h"

namespace nowcalls::store {

using ledger::Family;

void MetaRows::Add(std::string_view key, std::string_view value) { rows_.emplace_back(key, value); }

const std::string* MetaRows::Find(std::string_view key) const {
  for (const Row& row : rows_) {
    if (row.first == key) return &row.second;
  }
  return nullptr;
}

Status MetaRows::Show(ledger::EntityVisitor* visitor) const {
  // A missing format record has no key to name; after Ok the other rows still follow.
  if (Find(ledger::kFormatKey) == nullptr) {
    NOWCALLS_RETURN_IF_ERROR(visitor->OnBadRecord(
        {Family::kMeta, "", Status::Corruption("the ledger has no format record")}));
  }
  for (const ledger::EntityKind& kind : ledger::kEntityKinds) {
    const std::string* const value = kind.family == Family::kMeta ? Find(kind.meta_key) : nullptr;
    if (value == nullptr) continue;
    NOWCALLS_RETURN_IF_ERROR(kind.show({Family::kMeta, kind.meta_key, *value}, visitor));
  }
  // Unknown keys come last: a later version may have written them.
  for (const auto& [key, value] : rows_) {
    const ledger::StoredRow row{Family::kMeta, key, value};
    if (ledger::FindKind(row) == nullptr) NOWCALLS_RETURN_IF_ERROR(ledger::ShowRow(row, visitor));
  }
  return {};
}

int64_t MetaRows::WatermarkMs() const {
  const std::string* value = Find(ledger::kWatermarkKey);
  const std::string* sealed = Find(ledger::kSealKey);
  if (value == nullptr || sealed == nullptr) return 0;
  const Result<ledger::Watermark> watermark = ledger::DecodeWatermark(*value);
  const Result<ledger::Seal> seal = ledger::DecodeSeal(*sealed);
  if (!watermark.ok() || !seal.ok()) return 0;
  // A watermark of the future comes from a clock that was set back since, and proves nothing.
  return watermark->deadline_ms <= seal->ledger_ms ? watermark->deadline_ms : 0;
}

}  // namespace nowcalls::store
