// WriteBatchBuilder: a batch in the form in which RocksDB logs it.
//
// rocksdb::WriteBatch takes each change through several layers, which cost more than the bytes;
// this writes the bytes. The form is that of the log, so it does not change:
//
//   sequence (8, set by RocksDB) | count (4, little-endian) | count times:
//     tag | family, unless the tag says it is 0 | key | value, if it is a put
//
// The family is a varint; keys and values follow their lengths as varints. Tagged data for readers
// of the log may stand in between, and does not count.
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
// Of a family that the ledger lacks; nothing may be put there.
inline constexpr uint32_t kNoFamilyNumber = UINT32_MAX;

class WriteBatchBuilder : public ledger::KeyValueSink {
 public:
  // `bytes_expected`: of the whole batch; a wrong guess costs time only.
  WriteBatchBuilder(const FamilyNumbers& families, size_t bytes_expected);

  void Put(ledger::Family family, std::string_view key, std::string_view value) override;
  void SingleDelete(ledger::Family family, std::string_view key) override;
  void Delete(ledger::Family family, std::string_view key) override;

  // Adds data for readers of the log; the database never sees it.
  void LogData(std::string_view blob);

  // Nothing may follow.
  rocksdb::WriteBatch Finish();

 private:
  // As RocksDB tags a change of family 0, and one of another family.
  struct Tags {
    char of_default;
    char of_other;
  };

  // Each returns where to write, with room for `bytes` of keys and values and their lengths.
  char* Begin(Tags tags, ledger::Family family, size_t bytes);
  char* Room(size_t bytes);
  // All was written up to `end`.
  void End(const char* end);

  const FamilyNumbers& families_;
  std::string rep_;  // Longer than what is written of it, until it is finished.
  size_t size_;
  uint32_t count_ = 0;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_WRITE_BATCH_BUILDER_H_
