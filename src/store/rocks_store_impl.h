// The inside of RocksStore, shared by rocks_open.cc (how a ledger comes to be open), rocks_load.cc
// (how it is read), rocks_copy.cc (how it is copied) and rocks_store.cc (all else).
#ifndef NOWCALLS_STORE_ROCKS_STORE_IMPL_H_
#define NOWCALLS_STORE_ROCKS_STORE_IMPL_H_

#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ledger/witness.h"
#include "store/append_memtable.h"
#include "store/late_compactions.h"
#include "store/ledger_file_system.h"
#include "store/ledger_lock.h"
#include "store/log_end.h"
#include "store/log_views.h"
#include "store/rocks_store.h"
#include "store/scan_walk.h"
#include "store/show_rows.h"
#include "store/write_batch_builder.h"

namespace nowcalls::store {

inline std::string_view AsView(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

// One handle for each ledger::Family, found by name; nullptr until it is.
using FamilyHandles = std::array<rocksdb::ColumnFamilyHandle*, ledger::kFamilyCount>;

// The iterator of a walk between two of its steps. Making one over a vector memtable sorts a copy
// of it, tens of milliseconds for a full one, so a walk of many steps must pay for that only once.
struct ScanCursor {
  KeyRange range;
  rocksdb::Slice lower;  // Into `range`; RocksDB keeps pointers to these two.
  rocksdb::Slice upper;
  int64_t lower_ms = 0;  // Of the walk.
  int64_t upper_ms = 0;
  ledger::TokenKey last;  // Where `it` stands.
  std::unique_ptr<rocksdb::Iterator> it;
};

struct RocksStore::Impl {
  explicit Impl(std::string ledger_dir) : dir(std::move(ledger_dir)) {}
  ~Impl();

  std::vector<rocksdb::ColumnFamilyDescriptor> Describe(
      const std::vector<std::string>& names) const;
  // Takes over what a RocksDB open call made, and finds the families among `handles`.
  rocksdb::Status Adopt(const rocksdb::Status& status, rocksdb::DB* opened);

  Status OpenForServer();
  // What the witness says, before the ledger is opened; tells of a damaged one in `notes`.
  Status FindWitness(rocksdb::FileSystem* real);
  // Where the logs of the ledger end. Of FindWitness.
  Status FindEnd(rocksdb::FileSystem* real);
  // That no data file has what the logs were found not to have, and a note of that end.
  Status CheckEnd();
  // That what was opened has all of its batches. REQUIRES: there is a format record.
  Status CheckBatches(const LogViews& logs);
  Result<uint64_t> SealedBatch() const;
  // See RocksStore::Keep.
  Status KeepOpened();
  Status OpenAtRest();
  Status OpenBesideServer();
  // Of the two: what `shown` shows.
  Status OpenReadOnly(const std::shared_ptr<rocksdb::FileSystem>& shown);

  // Ok with `formatted` telling whether there is a format record; then everything fits it.
  Status CheckFormat(bool* formatted);
  Status CheckFamilyNames();
  Status Format();
  Result<bool> IsEmpty(rocksdb::ColumnFamilyHandle* handle) const;

  // Of Load, which is LoadAhead, or LoadReadable of a ledger that is damaged.
  Status LoadAhead(LedgerVisitor* visitor) const;
  Status LoadReadable(LedgerVisitor* visitor) const;
  Status ReadMeta(MetaRows* meta) const;
  // Shows what can be read of a family, and tells the visitor of each place that cannot.
  using ShowOne = std::function<Status(std::string_view key, std::string_view value)>;
  Status ShowReadable(ledger::Family family, const ShowOne& show, LedgerVisitor* visitor) const;
  // At the first row of a family from `lower` on. Any thread.
  std::unique_ptr<rocksdb::Iterator> NewReader(ledger::Family family,
                                               const std::string& lower) const;
  // What became of reading it.
  Status ReadStatus(ledger::Family family, const rocksdb::Status& status) const;

  // Of CopyTo.
  struct CopyPlan;
  struct CopiedLog;
  struct CopiedPart;
  // Finds out what a copy consists of, and links or opens all of it.
  Status TakeFiles(const std::string& to, CopyPlan* plan) const;
  Status PlanLive(CopyPlan* plan) const;
  Status PlanAtRest(CopyPlan* plan) const;
  void LinkTables(const std::string& to, CopyPlan* plan) const;
  Status Sum(CopyPlan* plan) const;
  Status OpenLog(CopiedLog* log) const;
  Status OpenPart(CopiedPart* part) const;
  Status CheckRoomFor(uint64_t bytes, const std::string& to) const;
  Result<CopiedFile> CopyLog(CopiedLog log, const std::string& to,
                             const std::atomic<bool>& stop) const;
  Result<CopiedFile> CopyPart(CopiedPart part, const std::string& to,
                              const std::atomic<bool>& stop) const;
  Status CopyParts(CopyPlan plan, const std::string& to, const std::atomic<bool>& stop,
                   std::vector<CopiedFile>* copied) const;

  std::unique_ptr<ScanCursor> NewCursor(ledger::Family family, KeyRange range) const;

  // What RocksDB reports, on a thread of its own.
  void FailInBackground(const Status& failure);
  // The first failure of the writer or in the background; it ends the store. The writer.
  const Status& CheckFailed();

  rocksdb::Status CloseDb();
  rocksdb::ColumnFamilyHandle* HandleOf(ledger::Family family) const {
    return families[static_cast<size_t>(family)];
  }

  const std::string dir;
  RocksStoreOptions options;
  // Of all families, which share what flushed tables leave: as much as one needs.
  std::shared_ptr<AppendMemtableFactory> memtables =
      std::make_shared<AppendMemtableFactory>(RocksStoreOptions().write_buffer_bytes);
  std::unique_ptr<LedgerLock> lock;         // Of a server; given up after the database is closed.
  std::shared_ptr<LedgerFileSystem> files;  // Of a server.
  std::unique_ptr<rocksdb::Env> env;
  LateCompactions* compactions = nullptr;  // Of a server: its env.
  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;  // All that are open, unknown ones too.
  FamilyHandles families{};
  FamilyNumbers family_numbers{};  // Of these.
  bool formatted_now = false;
  bool kept = false;  // What BeginOpen of `files` began is done.
  bool for_read = false;
  bool for_salvage = false;
  ReadMode read_mode = ReadMode::kAtRest;
  std::optional<ledger::Witness> witness;
  bool floor_counts = false;
  LogEnd log_end;
  bool may_lack = false;            // See Store::MayLackBatches.
  uint64_t last_batch = 0;          // As the ledger was opened; then of the last commit.
  std::vector<std::string> notes;   // See RocksStore::notes.
  std::shared_ptr<LogViews> views;  // Of a reader.

  // Owned by the writer.
  rocksdb::WriteOptions write_options;
  bool has_committed = false;
  Status failed;  // None is taken after it.

  std::mutex background_mutex;
  Status background_failure;  // Guarded by background_mutex.

  // Owned by the scan thread. nullptr unless the last step left `more`.
  std::unique_ptr<ScanCursor> cursor;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_STORE_IMPL_H_
