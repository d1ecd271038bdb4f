#include "store/memory_tables.h"

#include "base/check.h"
#include "ledger/codec.h"
#include "ledger/commit_batch.h"
#include "ledger/entity_table.h"
#include "store/batch_order.h"
#include "store/meta_rows.h"
#include "store/scan_walk.h"

namespace nowcalls::store {
namespace {

using ledger::Family;

// Reads the batch only: one that cannot be applied must change nothing.
class NothingSink : public ledger::KeyValueSink {
 public:
  void Put(Family, std::string_view, std::string_view) override {}
  void SingleDelete(Family, std::string_view) override {}
  void Delete(Family, std::string_view) override {}
};

class MapSink : public ledger::KeyValueSink {
 public:
  explicit MapSink(std::array<MemoryTables::Rows, ledger::kFamilyCount>* rows) : rows_(*rows) {}

  void Put(Family family, std::string_view key, std::string_view value) override {
    const auto [it, added] = In(family).insert_or_assign(std::string(key), value);
    // Of two puts of such a key, the older would survive a SingleDelete in RocksDB.
    NOWCALLS_CHECK(added || !ledger::IsPutOnce(family));
  }
  void SingleDelete(Family family, std::string_view key) override {
    MemoryTables::Rows& rows = In(family);
    const auto it = rows.find(key);
    NOWCALLS_CHECK(it != rows.end());
    rows.erase(it);
  }
  void Delete(Family family, std::string_view key) override {
    MemoryTables::Rows& rows = In(family);
    if (const auto it = rows.find(key); it != rows.end()) rows.erase(it);
  }

 private:
  MemoryTables::Rows& In(Family family) { return rows_[static_cast<size_t>(family)]; }

  std::array<MemoryTables::Rows, ledger::kFamilyCount>& rows_;
};

}  // namespace

MemoryTables::MemoryTables(const ledger::Format& format) {
  rows_[static_cast<size_t>(Family::kMeta)].emplace(ledger::kFormatKey,
                                                    ledger::EncodeFormat(format));
}

Status MemoryTables::Load(ledger::EntityVisitor* visitor) {
  MetaRows meta;
  for (const auto& [key, value] : rows(Family::kMeta)) meta.Add(key, value);
  NOWCALLS_RETURN_IF_ERROR(meta.Show(visitor));
  // As RocksStore, hides tokens below the watermark.
  const std::string lower = ledger::TokenKeyLowerBound(meta.WatermarkMs());
  for (const Family family : ledger::kLoadOrder) {
    if (family == Family::kMeta) continue;
    const Rows& in = rows(family);
    auto it = ledger::IsTokenFamily(family) ? in.lower_bound(lower) : in.begin();
    for (; it != in.end(); ++it) {
      NOWCALLS_RETURN_IF_ERROR(ledger::ShowRow({family, it->first, it->second}, visitor));
    }
  }
  return {};
}

Status MemoryTables::Apply(const ledger::SealedBatch& batch) {
  if (batch.number() <= applied_) return {};
  NOWCALLS_RETURN_IF_ERROR(CheckFollows(batch.number(), applied_));
  NothingSink nothing;
  NOWCALLS_RETURN_IF_ERROR(ledger::ApplyRecords(batch.records(), &nothing));
  MapSink sink(&rows_);
  applied_ = batch.number();
  return ledger::ApplyRecords(batch.records(), &sink);
}

void MemoryTables::Scan(const ledger::ScanRequest& request, ledger::ScanResult* result) {
  ScanWalk walk(request, result);
  for (const Family family : ledger::kTokenFamilies) {
    if (!walk.Visits(family)) continue;
    const KeyRange range = walk.RangeIn(family);
    const Rows& in = rows(family);
    for (auto it = in.lower_bound(range.lower); it != in.end() && it->first < range.upper; ++it) {
      if (!walk.Take(family, it->first)) return;
    }
  }
}

}  // namespace nowcalls::store
