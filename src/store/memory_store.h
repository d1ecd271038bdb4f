// MemoryStore: a ledger in ordered maps, for tests, the simulator and benchmarks of the core.
//
// Thread: any, one call at a time. Same records, same order, same scans as RocksStore; nothing
// survives the object. SingleDelete of an absent key is a CHECK failure here, so that tests find a
// pair that does not match.
#ifndef NOWCALLS_STORE_MEMORY_STORE_H_
#define NOWCALLS_STORE_MEMORY_STORE_H_

#include <array>
#include <functional>
#include <map>
#include <string>

#include "store/store.h"

namespace nowcalls::store {

class MemoryStore : public Store {
 public:
  explicit MemoryStore(const ledger::Format& format);

  Status Load(LedgerVisitor* visitor) override;
  Status Commit(const ledger::CommitBatch& batch) override;
  Status Sync() override { return {}; }
  void Scan(const ledger::ScanRequest& request, ledger::ScanResult* result) override;

  using Rows = std::map<std::string, std::string, std::less<>>;
  const Rows& rows(ledger::Family family) const { return rows_[static_cast<size_t>(family)]; }

 private:
  std::array<Rows, ledger::kFamilyCount> rows_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_MEMORY_STORE_H_
