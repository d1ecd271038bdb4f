// MemoryTables: a ledger in ordered maps.
//
// Thread: any, one call at a time. Same order and scans as RocksStore. SingleDelete of an absent
// key is a CHECK failure here.
#ifndef NOWCALLS_STORE_MEMORY_TABLES_H_
#define NOWCALLS_STORE_MEMORY_TABLES_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "store/tables.h"

namespace nowcalls::store {

class MemoryTables : public Tables {
 public:
  explicit MemoryTables(const ledger::Format& format);

  Status Load(ledger::EntityVisitor* visitor) override;
  uint64_t applied() const override { return applied_; }
  Status Apply(const ledger::SealedBatch& batch) override;
  Status Sync() override { return {}; }
  void Scan(const ledger::ScanRequest& request, ledger::ScanResult* result) override;

  using Rows = std::map<std::string, std::string, std::less<>>;
  const Rows& rows(ledger::Family family) const { return rows_[static_cast<size_t>(family)]; }

 private:
  std::array<Rows, ledger::kFamilyCount> rows_;
  uint64_t applied_ = 0;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_MEMORY_TABLES_H_
