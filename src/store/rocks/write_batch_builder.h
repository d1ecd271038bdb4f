// WriteBatchBuilder: a batch in the form of RocksDB's log, built in one pass
// (write_batch_builder.cc).
//
// Thread: one at a time.
#ifndef NOWCALLS_STORE_ROCKS_WRITE_BATCH_BUILDER_H_
#define NOWCALLS_STORE_ROCKS_WRITE_BATCH_BUILDER_H_

#include <rocksdb/write_batch.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "ledger/commit_batch.h"
#include "ledger/families.h"

namespace nowcalls::store {

// RocksDB's number of each family.
using FamilyNumbers = std::array<uint32_t, ledger::kFamilyCount>;
// Of an absent family; nothing may be put there.
inline constexpr uint32_t kNoFamilyNumber = UINT32_MAX;

class WriteBatchBuilder : public ledger::KeyValueSink {
 public:
  // `bytes_expected`: of the batch; a wrong guess costs time only.
  WriteBatchBuilder(const FamilyNumbers& families, size_t bytes_expected);

  void Put(ledger::Family family, std::string_view key, std::string_view value) override;
  void SingleDelete(ledger::Family family, std::string_view key) override;
  void Delete(ledger::Family family, std::string_view key) override;

  // For readers of the log; the database never sees it.
  void LogData(std::string_view blob);

  // Nothing may follow.
  rocksdb::WriteBatch Finish();

 private:
  // RocksDB's tags of a change: of family 0, and of others.
  struct Tags {
    char of_default;
    char of_other;
  };

  char* Begin(Tags tags, ledger::Family family, size_t bytes);
  char* Room(size_t bytes);
  void End(const char* end);

  const FamilyNumbers& families_;
  std::string rep_;  // Longer than what is written of it, until it is finished.
  size_t size_;
  uint32_t count_ = 0;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_WRITE_BATCH_BUILDER_H_
