// Database: RocksDB's database of a ledger while it is open, with its families found by name.
//
// Thread: Open, MakeFamilies, WriteFormat and Close on one, with nothing beside them; all else on
// any, as rocksdb::DB.
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

// One handle for each ledger::Family.
using FamilyHandles = std::array<rocksdb::ColumnFamilyHandle*, ledger::kFamilyCount>;

// Reads the names of the families from the manifest of the database in `dir`.
StoreError ListFamilies(const rocksdb::DBOptions& options, const std::string& dir,
                        std::vector<std::string>* names);

class Database {
 public:
  // In the directory `dir`. `write_buffer_bytes`: the size of a family's memtable.
  Database(std::string dir, size_t write_buffer_bytes);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  enum class Access { kWrite, kRead };
  // Opens it with the families `names`, through `env`, which may be nullptr for the real disk.
  // `doing` completes "cannot ..." in a message.
  StoreError Open(Access access, rocksdb::DBOptions options, std::unique_ptr<rocksdb::Env> env,
                  const std::vector<std::string>& names, std::string_view doing);
  // Asks how the first read of a data file failed that did, if one did. Without it none has.
  void SetFailedRead(std::function<rocksdb::IOStatus()> failed) {
    failed_read_ = std::move(failed);
  }
  // kIo if a read has failed so far: what was shown since may lack rows. LogViews::FailedRead.
  StoreError CheckAllRead() const;
  // Gives up all handles. OK when it is not open.
  rocksdb::Status Close();
  bool is_open() const { return db_ != nullptr; }

  const std::string& dir() const { return dir_; }
  // REQUIRES of all below: is_open().
  rocksdb::DB* db() const { return db_.get(); }
  rocksdb::Env* env() const { return db_->GetEnv(); }
  // All that are open, unknown ones too.
  const std::vector<rocksdb::ColumnFamilyHandle*>& handles() const { return handles_; }
  // nullptr: there is no such family. A ledger of format version 1 or 2 lacks kRates.
  rocksdb::ColumnFamilyHandle* HandleOf(ledger::Family family) const {
    return families_[static_cast<size_t>(family)];
  }

  // The version of the ledger's format; 0: there is no format record, and the database is empty.
  // kCorruption if there is none in a database that holds anything.
  Result<uint32_t> FormatVersion() const;
  // kDamaged unless the families are exactly those of a ledger of the format version.
  StoreError CheckFamilies(uint32_t format_version) const;
  // RocksDB's numbers of them. REQUIRES: CheckFamilies is ok.
  FamilyNumbers NumbersOfFamilies() const;
  // Makes the families that are missing; none for a ledger that has them all.
  Status MakeFamilies();
  // Writes the format record, and has it in a data file when it returns.
  Status WriteFormat(const ledger::Format& format);
  // The batch that the seal closes; 0: there is no seal.
  Result<uint64_t> SealedBatch() const;

 private:
  Result<bool> IsEmpty(rocksdb::ColumnFamilyHandle* handle) const;
  void FindFamilies();
  // NotFound: there is no such record.
  rocksdb::Status GetMeta(std::string_view key, std::string* value) const;

  const std::string dir_;
  const size_t write_buffer_bytes_;
  // Of all families, which share the memory of flushed tables: as much as one table needs.
  const std::shared_ptr<AppendMemtableFactory> memtables_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  FamilyHandles families_{};
  std::function<rocksdb::IOStatus()> failed_read_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_DATABASE_H_
