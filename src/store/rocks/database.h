// Database: the open RocksDB database of a ledger, families found by name.
//
// Thread: Open, MakeFamilies, WriteFormat and Close alone; the rest as rocksdb::DB.
#ifndef NOWCALLS_STORE_ROCKS_DATABASE_H_
#define NOWCALLS_STORE_ROCKS_DATABASE_H_

#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ledger/codec.h"
#include "ledger/families.h"
#include "nowcalls/status.h"
#include "store/disk/store_error.h"
#include "store/memtable/append_memtable.h"
#include "store/rocks/write_batch_builder.h"

namespace nowcalls::store {

inline std::string_view AsView(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

using FamilyHandles = std::array<rocksdb::ColumnFamilyHandle*, ledger::kFamilyCount>;

// Family names, from the manifest in `dir`.
StoreError ListFamilies(const rocksdb::DBOptions& options, const std::string& dir,
                        std::vector<std::string>* names);

class Database {
 public:
  // `write_buffer_bytes`: size of a family's memtable.
  Database(std::string dir, size_t write_buffer_bytes);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  enum class Access { kWrite, kRead };
  // Opens the families `names` through `env`; nullptr: the real disk. `doing` completes "cannot
  // ...".
  StoreError Open(Access access, rocksdb::DBOptions options, std::unique_ptr<rocksdb::Env> env,
                  const std::vector<std::string>& names, std::string_view doing);
  // `failed` returns the first failed read of a data file; without it none counts.
  void SetFailedRead(std::function<rocksdb::IOStatus()> failed) {
    failed_read_ = std::move(failed);
  }
  // kIo if a read has failed: rows shown since may be incomplete.
  StoreError CheckAllRead() const;
  // Gives up all handles. OK if not open.
  rocksdb::Status Close();
  bool is_open() const { return db_ != nullptr; }

  const std::string& dir() const { return dir_; }
  // REQUIRES of all below: is_open().
  rocksdb::DB* db() const { return db_.get(); }
  rocksdb::Env* env() const { return db_->GetEnv(); }
  // Unknown ones too.
  const std::vector<rocksdb::ColumnFamilyHandle*>& handles() const { return handles_; }
  // nullptr: absent, as kRates before format version 3.
  rocksdb::ColumnFamilyHandle* HandleOf(ledger::Family family) const {
    return families_[static_cast<size_t>(family)];
  }

  // Format version; 0: the database is empty. kCorruption: records, but no format record.
  Result<uint32_t> FormatVersion() const;
  // kDamaged unless the families are exactly those of the version.
  StoreError CheckFamilies(uint32_t format_version) const;
  // By RocksDB. REQUIRES: CheckFamilies is ok.
  FamilyNumbers NumbersOfFamilies() const;
  Status MakeFamilies();
  // Returns with the format record in a data file.
  Status WriteFormat(const ledger::Format& format);
  // Batch number of the seal; 0: no seal.
  Result<uint64_t> SealedBatch() const;

 private:
  Result<bool> IsEmpty(rocksdb::ColumnFamilyHandle* handle) const;
  void FindFamilies();
  rocksdb::Status GetMeta(std::string_view key, std::string* value) const;

  const std::string dir_;
  const size_t write_buffer_bytes_;
  const std::shared_ptr<AppendMemtableFactory> memtables_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  FamilyHandles families_{};
  std::function<rocksdb::IOStatus()> failed_read_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_DATABASE_H_
