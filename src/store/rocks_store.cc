#include "store/rocks_store.h"

#include <algorithm>

#include "base/check.h"
#include "ledger/codec.h"
#include "store/rocks_status.h"
#include "store/rocks_store_impl.h"
#include "store/scan_walk.h"
#include "store/write_batch_builder.h"

namespace nowcalls::store {
namespace {

using ledger::Family;

rocksdb::Slice AsSlice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

// Whether `cursor` stands where the step before `request` ended, in `family`.
bool GoesOn(const ScanCursor* cursor, const ledger::ScanRequest& request, Family family) {
  return cursor != nullptr && request.resume && request.after.family == family &&
         cursor->last == request.after && cursor->lower_ms == request.lower_ms &&
         cursor->upper_ms == request.upper_ms;
}

Status NotForWriting(const std::string& dir) {
  return Status::FailedPrecondition("the ledger in " + dir + " is not open for writing");
}

}  // namespace

RocksStore::RocksStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RocksStore::~RocksStore() = default;

ReadMode RocksStore::read_mode() const { return impl_->read_mode; }
bool RocksStore::formatted_now() const { return impl_->formatted_now; }
bool RocksStore::MayLackBatches() const { return impl_->may_lack; }

const std::vector<std::string>& RocksStore::notes() const { return impl_->notes; }

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

Status RocksStore::CommitTelling(const ledger::CommitBatch& batch,
                                 const std::function<void()>& durable) {
  NOWCALLS_CHECK(batch.sealed());
  if (impl_->db == nullptr || impl_->for_read) return NotForWriting(impl_->dir);
  NOWCALLS_RETURN_IF_ERROR(impl_->CheckFailed());
  // The log is written through a descriptor, wherever it has gone.
  impl_->failed = impl_->lock->CheckStillOurs();
  if (impl_->failed.ok()) impl_->failed = impl_->KeepOpened();
  if (!impl_->failed.ok()) return impl_->failed;
  // Once `durable` was called, the batch is somebody else's.
  const uint64_t number = batch.number();
  if (number != impl_->last_batch + 1) {
    impl_->failed =
        Status::InvalidArgument("batch " + std::to_string(number) + " does not follow batch " +
                                std::to_string(impl_->last_batch));
    return impl_->failed;
  }
  // RocksDB's form takes about as much room as the records do.
  WriteBatchBuilder builder(impl_->family_numbers, batch.bytes().size() * 5 / 4);
  Status status = ledger::ApplyRecords(batch.bytes(), &builder);
  builder.LogData(ledger::EncodeLogData(number));
  if (status.ok()) {
    if (!impl_->has_committed) impl_->compactions->LetIn();
    rocksdb::WriteOptions options = impl_->write_options;
    options.sync = options.sync || !impl_->has_committed;
    rocksdb::WriteBatch writes = builder.Finish();
    impl_->files->Begun(number, durable);
    status = FromRocks(impl_->db->Write(options, &writes), "commit", impl_->dir);
    impl_->files->Ended(status.ok() && options.sync);
  }
  if (status.ok()) {
    const bool synced = impl_->write_options.sync || !impl_->has_committed;
    const bool end_unsynced = impl_->write_options.sync && !impl_->has_committed;
    impl_->has_committed = true;
    impl_->last_batch = number;
    impl_->files->Committed(number, synced);
    if (end_unsynced) {
      impl_->failed = FromRocks(impl_->files->EndUnsynced(), "write the witness", impl_->dir);
    }
    // RocksDB takes batches behind some failures: a compaction without space is one.
    return impl_->CheckFailed();
  }
  status = status.WithContext("batch " + std::to_string(number));
  impl_->failed = status;
  return status;
}

Status RocksStore::Sync() {
  if (impl_->db == nullptr || impl_->for_read) return NotForWriting(impl_->dir);
  if (!impl_->CheckFailed().ok() || impl_->write_options.sync) return impl_->failed;
  impl_->failed = FromRocks(impl_->db->SyncWAL(), "sync the log", impl_->dir);
  if (impl_->failed.ok()) impl_->files->Synced();
  return impl_->CheckFailed();
}

Status RocksStore::CheckPlace() {
  if (impl_->db == nullptr || impl_->for_read) return NotForWriting(impl_->dir);
  if (impl_->failed.ok()) impl_->failed = impl_->lock->CheckStillOurs();
  return impl_->failed;
}

std::optional<uint64_t> RocksStore::FreeBytes() {
  // First, or what is freed between the two looks would be in neither.
  const uint64_t to_free = impl_->files != nullptr ? impl_->files->BytesToFree() : 0;
  uint64_t free_bytes = 0;
  if (impl_->db == nullptr ||
      !impl_->db->GetFileSystem()
           ->GetFreeSpace(impl_->dir, rocksdb::IOOptions(), &free_bytes, nullptr)
           .ok()) {
    return std::nullopt;
  }
  if (impl_->files != nullptr) {
    impl_->files->FreeAtOnce(free_bytes < impl_->options.nearly_full_bytes);
  }
  // A start deletes much, and must not take the disk for nearly full because of what has gone. But
  // that is not there yet, so it counts for no more than what is.
  return free_bytes + std::min(free_bytes, to_free);
}

Status RocksStore::Keep() {
  if (impl_->db == nullptr || impl_->for_read) return NotForWriting(impl_->dir);
  return impl_->KeepOpened();
}

std::unique_ptr<ScanCursor> RocksStore::Impl::NewCursor(Family family, KeyRange range) const {
  auto made = std::make_unique<ScanCursor>();
  made->range = std::move(range);
  made->lower = AsSlice(made->range.lower);
  made->upper = AsSlice(made->range.upper);
  rocksdb::ReadOptions read;
  read.iterate_lower_bound = &made->lower;
  read.iterate_upper_bound = &made->upper;
  made->it.reset(db->NewIterator(read, HandleOf(family)));
  made->it->SeekToFirst();
  return made;
}

void RocksStore::Scan(const ledger::ScanRequest& request, ledger::ScanResult* result) {
  ScanWalk walk(request, result);
  std::unique_ptr<ScanCursor> cursor = std::move(impl_->cursor);
  if (impl_->db == nullptr) {
    result->status = Status::FailedPrecondition("the ledger is closed");
    return;
  }
  for (const Family family : ledger::kTokenFamilies) {
    if (!walk.Visits(family)) continue;
    if (GoesOn(cursor.get(), request, family)) {
      cursor->it->Next();
    } else {
      KeyRange range = walk.RangeIn(family);
      if (range.lower >= range.upper) continue;
      cursor = impl_->NewCursor(family, std::move(range));
    }
    rocksdb::Iterator* it = cursor->it.get();
    for (; it->Valid(); it->Next()) {
      if (!walk.Take(family, AsView(it->key()))) break;
    }
    if (result->more) {
      cursor->lower_ms = request.lower_ms;
      cursor->upper_ms = request.upper_ms;
      cursor->last = result->expired.back();
      impl_->cursor = std::move(cursor);
      return;
    }
    if (!result->status.ok()) return;
    result->status = FromRocks(it->status(),
                               "scan column family " + std::string(FamilyName(family)), impl_->dir);
    if (!result->status.ok()) return;
  }
}

Status RocksStore::Close() {
  if (impl_->db == nullptr) return {};
  Status status;
  // A flush waits for them where there are very many files.
  if (impl_->compactions != nullptr) impl_->compactions->LetIn();
  if (!impl_->for_read && impl_->failed.ok()) {
    status = CheckPlace();
    if (status.ok()) status = impl_->KeepOpened();
  }
  if (!impl_->for_read && impl_->failed.ok() && status.ok()) status = Sync();
  if (!impl_->for_read && impl_->failed.ok() && status.ok()) {
    status = FromRocks(impl_->db->Flush(rocksdb::FlushOptions(), impl_->handles),
                       "flush the ledger", impl_->dir);
    if (status.ok()) {
      impl_->files->Synced();
      status = FromRocks(impl_->files->Flushed(), "write the witness", impl_->dir);
    }
    // Who has committed nothing has not put in writing which fences are skipped.
    if (status.ok() && (impl_->has_committed || !impl_->may_lack)) {
      status = FromRocks(impl_->files->EndUnsynced(), "write the witness", impl_->dir);
    }
  }
  const Status closed = FromRocks(impl_->CloseDb(), "close the ledger", impl_->dir);
  return status.ok() ? closed : status;
}

}  // namespace nowcalls::store
