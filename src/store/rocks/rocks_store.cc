#include "store/rocks/rocks_store.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "ledger/codec.h"
#include "ledger/commit_batch.h"
#include "store/batch_order.h"
#include "store/disk/ledger_files.h"
#include "store/disk/store_error.h"
#include "store/rocks/ledger_copy.h"
#include "store/rocks/ledger_load.h"
#include "store/rocks/ledger_scan.h"
#include "store/rocks/rocks_options.h"
#include "store/rocks/server_ledger.h"
#include "store/rocks/write_batch_builder.h"

namespace nowcalls::store {

struct RocksStore::Impl {
  Impl(std::unique_ptr<LedgerLock> lock, const RocksStoreOptions& with)
      : options(with),
        copy_leaves_bytes(with.copy_leaves_bytes),
        nearly_full_bytes(with.nearly_full_bytes),
        ledger(std::move(lock), with, [this](const Status& failure) { FailInBackground(failure); }),
        scan(&ledger.database()),
        write_options(CommitOptions(with.durability)) {}

  // The first failure, of the writer or in the background, ends the store.
  const Status& CheckFailed();
  void FailInBackground(const Status& failure);
  // Whether batch `number` may be written. A failure ends the store.
  const Status& CheckMayCommit(uint64_t number);
  // Ok: the batch is in RocksDB, and on disk if `sync`.
  Status Write(const ledger::SealedBatch& batch, bool sync, const std::function<void()>& durable);
  Status FlushAll();
  // Fails if a log in use was harmed, after all changes are in data files.
  Status CheckLogs();

  Database& database() { return ledger.database(); }
  bool is_open() { return database().is_open(); }
  Status CheckOpen() {
    if (is_open()) return {};
    return Status::FailedPrecondition("the ledger in " + database().dir() +
                                      " is not open for writing");
  }

  const RocksStoreOptions options;
  std::atomic<uint64_t> copy_leaves_bytes;  // Of `options` at first.
  std::atomic<uint64_t> nearly_full_bytes;
  std::mutex background_mutex;
  Status background_failure;  // Guarded by background_mutex.
  ServerLedger ledger;
  LedgerScan scan;  // The scan thread's.

  // The writer's.
  rocksdb::WriteOptions write_options;
  FamilyNumbers family_numbers{};
  uint64_t last_batch = 0;
  bool has_committed = false;
  Status failed;  // No batch is taken after it.
};

void RocksStore::Impl::FailInBackground(const Status& failure) {
  {
    const std::lock_guard guard(background_mutex);
    background_failure = failure;
  }
  if (options.on_background_error) options.on_background_error(failure);
}

const Status& RocksStore::Impl::CheckFailed() {
  if (!failed.ok()) return failed;
  const std::lock_guard guard(background_mutex);
  failed = background_failure;
  return failed;
}

const Status& RocksStore::Impl::CheckMayCommit(uint64_t number) {
  if (!CheckFailed().ok()) return failed;
  // The log is written through a descriptor, wherever its directory has gone.
  failed = ledger.lock().CheckStillOurs();
  if (failed.ok()) failed = ledger.Accept();
  if (failed.ok()) failed = CheckFollows(number, last_batch);
  return failed;
}

Status RocksStore::Impl::Write(const ledger::SealedBatch& batch, bool sync,
                               const std::function<void()>& durable) {
  // RocksDB's form takes about as much room as the records.
  WriteBatchBuilder builder(family_numbers, batch.records().size() * 5 / 4);
  NOWCALLS_RETURN_IF_ERROR(ledger::ApplyRecords(batch.records(), &builder));
  builder.LogData(ledger::EncodeLogData(batch.number()));
  rocksdb::WriteBatch writes = builder.Finish();
  rocksdb::WriteOptions with = write_options;
  with.sync = sync;
  ledger.files().Begun(batch.number(), durable);
  const rocksdb::Status written = database().db()->Write(with, &writes);
  ledger.files().Ended(written.ok() && sync);
  return FromRocks(written, "commit", database().dir());
}

Status RocksStore::Impl::FlushAll() {
  const rocksdb::Status flushed =
      database().db()->Flush(rocksdb::FlushOptions(), database().handles());
  NOWCALLS_RETURN_IF_ERROR(FromRocks(flushed, "flush the ledger", database().dir()));
  ledger.files().Synced();
  return FromRocks(ledger.files().Flushed(), "write the witness", database().dir());
}

// A log's content is in memory, too, so its loss need not lose anything.
Status RocksStore::Impl::CheckLogs() {
  const std::string harmed = ledger.files().FindHarmedLog();
  if (harmed.empty()) return {};
  const Status flushed = FlushAll();
  return Status::IoError(
      "a log of the ledger, " + harmed + ", by somebody else while the server was running. " +
      (flushed.ok() ? "All that it held was written to data files, so nothing is lost"
                    : "What it held could not be written to data files, and may be lost: " +
                          flushed.message()) +
      ". Keep whatever removes or cuts files out of the ledger's directory, then start the server "
      "again");
}

RocksStore::RocksStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RocksStore::~RocksStore() = default;

Result<std::unique_ptr<RocksStore>> RocksStore::Open(std::unique_ptr<LedgerLock> lock,
                                                     const RocksStoreOptions& options) {
  auto impl = std::make_unique<Impl>(std::move(lock), options);
  NOWCALLS_RETURN_IF_ERROR(impl->ledger.Open());
  impl->last_batch = impl->ledger.opened_batch();
  impl->family_numbers = impl->database().NumbersOfFamilies();
  return std::unique_ptr<RocksStore>(new RocksStore(std::move(impl)));
}

Result<std::unique_ptr<RocksStore>> RocksStore::Open(const std::string& data_dir,
                                                     const RocksStoreOptions& options) {
  Result<std::unique_ptr<LedgerLock>> lock = LedgerLock::Take(data_dir);
  if (!lock.ok()) return lock.status();
  return Open(*std::move(lock), options);
}

bool RocksStore::formatted_now() const { return impl_->ledger.formatted_now(); }
bool RocksStore::MayLackBatches() const { return impl_->ledger.may_lack_batches(); }
const std::vector<std::string>& RocksStore::notes() const { return impl_->ledger.notes(); }

Status RocksStore::Load(ledger::EntityVisitor* visitor) {
  if (!impl_->is_open()) return Status::FailedPrecondition("the ledger is closed");
  return LoadLedger(impl_->database(), LoadFrom::kWatermark, visitor);
}

Status RocksStore::Accept() {
  NOWCALLS_RETURN_IF_ERROR(impl_->CheckOpen());
  NOWCALLS_RETURN_IF_ERROR(impl_->ledger.Accept());
  // Families last: a ledger refused before this keeps its old format.
  NOWCALLS_RETURN_IF_ERROR(impl_->database().MakeFamilies());
  impl_->family_numbers = impl_->database().NumbersOfFamilies();
  return {};
}

Status RocksStore::CommitTelling(const ledger::SealedBatch& batch,
                                 const std::function<void()>& durable) {
  NOWCALLS_RETURN_IF_ERROR(impl_->CheckOpen());
  // After `durable` the batch may belong to another owner.
  const uint64_t number = batch.number();
  NOWCALLS_RETURN_IF_ERROR(impl_->CheckMayCommit(number));

  // A process's first batch is always synced, and ends the waiting of the start.
  const bool is_first = !impl_->has_committed;
  if (is_first) impl_->ledger.LetCompactionsIn();
  const bool sync = is_first || impl_->write_options.sync;
  const Status written = impl_->Write(batch, sync, durable);
  if (!written.ok()) {
    impl_->failed = written.WithContext("batch " + std::to_string(number));
    return impl_->failed;
  }

  // With `sync`, all later batches are on disk when answered: the witness hears it once.
  impl_->has_committed = true;
  impl_->last_batch = number;
  impl_->ledger.files().Committed(number, sync);
  if (is_first && impl_->write_options.sync) {
    impl_->failed = FromRocks(impl_->ledger.files().EndUnsynced(), "write the witness",
                              impl_->database().dir());
  }
  // RocksDB takes batches after some failures, such as a compaction without space.
  return impl_->CheckFailed();
}

// RocksDB writes log and tables at once, and replays its log at an open. So Apply finds its batch
// there, Read has nothing behind the tables, and RocksDB trims.
Status RocksStore::Apply(const ledger::SealedBatch& batch) {
  if (batch.number() <= impl_->last_batch) return {};
  return Status::FailedPrecondition("batch " + std::to_string(batch.number()) +
                                    " is not in the log of these tables");
}

Status RocksStore::Read(uint64_t from, const BatchSink& /*sink*/) {
  if (from > impl_->last_batch) return {};
  return Status::FailedPrecondition("batch " + std::to_string(from) +
                                    " is in the tables; their log shows none of those");
}

uint64_t RocksStore::applied() const { return impl_->last_batch; }

Status RocksStore::Sync() {
  NOWCALLS_RETURN_IF_ERROR(impl_->CheckOpen());
  if (!impl_->CheckFailed().ok() || impl_->write_options.sync) return impl_->failed;
  impl_->failed =
      FromRocks(impl_->database().db()->SyncWAL(), "sync the log", impl_->database().dir());
  if (impl_->failed.ok()) impl_->ledger.files().Synced();
  return impl_->CheckFailed();
}

void RocksStore::Scan(const ledger::ScanRequest& request, ledger::ScanResult* result) {
  impl_->scan.Step(request, result);
}

Status RocksStore::CheckPlace() {
  NOWCALLS_RETURN_IF_ERROR(impl_->CheckOpen());
  if (impl_->failed.ok()) impl_->failed = impl_->ledger.lock().CheckStillOurs();
  if (impl_->failed.ok()) impl_->failed = impl_->CheckLogs();
  return impl_->failed;
}

std::optional<uint64_t> RocksStore::FreeBytes() {
  if (!impl_->is_open()) return std::nullopt;
  LedgerFileSystem& files = impl_->ledger.files();
  // First, or bytes freed between the two looks would count in neither.
  const uint64_t to_free = files.BytesToFree();
  uint64_t free_bytes = 0;
  const rocksdb::IOStatus status =
      files.GetFreeSpace(impl_->database().dir(), rocksdb::IOOptions(), &free_bytes, nullptr);
  if (!status.ok()) return std::nullopt;
  files.FreeAtOnce(free_bytes < impl_->nearly_full_bytes);
  // A start deletes much and must not see a nearly full disk because of it. That room is not there
  // yet, so it counts for at most what is free.
  return free_bytes + std::min(free_bytes, to_free);
}

std::optional<uint64_t> RocksStore::FreeFiles() { return FreeInodes(impl_->database().dir()); }

Result<std::vector<CopiedFile>> RocksStore::CopyTo(const std::string& to,
                                                   const std::atomic<bool>& stop) const {
  if (!impl_->is_open()) return Status::FailedPrecondition("the ledger is closed");
  // With very many files a flush waits for compactions.
  impl_->ledger.LetCompactionsIn();
  return LedgerCopy(impl_->database(), LedgerCopy::Source::kServed, impl_->copy_leaves_bytes, to,
                    &stop)
      .Make();
}

void RocksStore::SetNearlyFull(uint64_t bytes) {
  impl_->copy_leaves_bytes = bytes;
  impl_->nearly_full_bytes = bytes;
}

Status RocksStore::Close() {
  if (!impl_->is_open()) return {};
  impl_->ledger.LetCompactionsIn();  // As for CopyTo.
  Status status;
  if (impl_->failed.ok()) {
    status = CheckPlace();
    if (status.ok()) status = impl_->ledger.Accept();
    if (status.ok()) status = Sync();
    if (status.ok()) status = impl_->FlushAll();
    // Without a commit the skipped fences are not in writing yet: the next start must skip as well.
    if (status.ok() && (impl_->has_committed || !impl_->ledger.may_lack_batches())) {
      status = FromRocks(impl_->ledger.files().EndUnsynced(), "write the witness",
                         impl_->database().dir());
    }
  }
  impl_->scan.Stop();
  const Status closed =
      FromRocks(impl_->ledger.Close(), "close the ledger", impl_->database().dir());
  return status.ok() ? closed : status;
}

}  // namespace nowcalls::store
