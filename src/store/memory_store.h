// MemoryStore: MemoryLog and MemoryTables as one store, for services without a disk.
//
// Thread: any, one call at a time.
#ifndef NOWCALLS_STORE_MEMORY_STORE_H_
#define NOWCALLS_STORE_MEMORY_STORE_H_

#include <cstdint>

#include "store/memory_log.h"
#include "store/memory_tables.h"
#include "store/store.h"

namespace nowcalls::store {

class MemoryStore : public Store {
 public:
  explicit MemoryStore(const ledger::Format& format) : tables_(format) {}

  Status Append(const ledger::SealedBatch& batch) override { return log_.Append(batch); }
  Status Read(uint64_t from, const BatchSink& sink) override { return log_.Read(from, sink); }
  Status Trim(uint64_t number) override { return log_.Trim(number); }

  Status Load(ledger::EntityVisitor* visitor) override { return tables_.Load(visitor); }
  uint64_t applied() const override { return tables_.applied(); }
  Status Apply(const ledger::SealedBatch& batch) override {
    NOWCALLS_RETURN_IF_ERROR(tables_.Apply(batch));
    return log_.Trim(tables_.applied());
  }
  void Scan(const ledger::ScanRequest& request, ledger::ScanResult* result) override {
    tables_.Scan(request, result);
  }

  Status Sync() override { return {}; }

  const MemoryTables::Rows& rows(ledger::Family family) const { return tables_.rows(family); }

 private:
  MemoryLog log_;
  MemoryTables tables_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_MEMORY_STORE_H_
