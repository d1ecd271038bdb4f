#include "store/rocks/ledger_file_system.h"

#include <utility>

#include "base/check.h"
#include "store/disk/file_names.h"
#include "store/disk/ledger_files.h"
#include "store/disk/store_error.h"
#include "store/log/log_file.h"
#include "store/log/manifest_file.h"

namespace nowcalls::store {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

// An open of RocksDB writes a new manifest, deletes files that the old one does not name, and cuts
// logs behind their last record. With a damaged old manifest, the deleted files are
// the ledger. So deletions and the rename to CURRENT wait for Accept.
//
// A process killed before Accept leaves the old manifest and files beside it, which the next open
// removes (opening_mark.h).

namespace {

// Stands for a log that RocksDB wants to cut; the log stays.
class UntouchedFile : public rocksdb::FSWritableFile {
 public:
  using FSWritableFile::Append;
  IOStatus Append(const rocksdb::Slice& /*data*/, const IOOptions& /*options*/,
                  IODebugContext* /*context*/) override {
    return IOStatus::NotSupported("a log that is recovered is not written");
  }
  IOStatus Truncate(uint64_t /*size*/, const IOOptions& /*options*/,
                    IODebugContext* /*context*/) override {
    return IOStatus::OK();
  }
  IOStatus Flush(const IOOptions& /*options*/, IODebugContext* /*context*/) override {
    return IOStatus::OK();
  }
  IOStatus Sync(const IOOptions& /*options*/, IODebugContext* /*context*/) override {
    return IOStatus::OK();
  }
  IOStatus Close(const IOOptions& /*options*/, IODebugContext* /*context*/) override {
    return IOStatus::OK();
  }
};

// Whether the file at `path` has a zero at `offset`. An unreadable file has none.
bool HasZeroAt(rocksdb::FileSystem* disk, const std::string& path, uint64_t offset) {
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  if (!disk->NewRandomAccessFile(path, rocksdb::FileOptions(), &file, nullptr).ok()) return false;
  char byte = 1;
  rocksdb::Slice read;
  const IOStatus status = file->Read(offset, 1, IOOptions(), &read, &byte, nullptr);
  return status.ok() && read.size() == 1 && read[0] == 0;
}

// A data file without reserved blocks. RocksDB reserves what a table may become and gives most back
// after a flush. That delays syncs of other files, on some disks by a millisecond or more.
class TableFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  using FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;
  void PrepareWrite(size_t /*offset*/, size_t /*bytes*/, const IOOptions& /*options*/,
                    IODebugContext* /*context*/) override {}
};

}  // namespace

LedgerFileSystem::LedgerFileSystem(const std::shared_ptr<rocksdb::FileSystem>& target,
                                   const LedgerLock* lock, uint64_t spare_bytes,
                                   std::shared_ptr<rocksdb::Logger> log, Report report)
    : LedgerFileSystem(std::make_shared<LogViews>(target, LogViews::State::kAtRest), lock,
                       spare_bytes, std::move(log), std::move(report)) {}

LedgerFileSystem::LedgerFileSystem(const std::shared_ptr<LogViews>& views, const LedgerLock* lock,
                                   uint64_t spare_bytes, std::shared_ptr<rocksdb::Logger> log,
                                   Report report)
    : FileSystemWrapper(views),
      lock_(lock),
      current_path_(lock->ledger_dir() + "/CURRENT"),
      report_(std::move(report)),
      views_(views),
      mark_(views->target(), lock->ledger_dir()),
      spares_(
          views, lock, spare_bytes, [this] { return SyncDirectoryOrReport(); }, std::move(log)),
      freed_(views, [this] { return SyncDirectoryOrReport(); }),
      witness_(views, lock, [this](const IOStatus& failure) {
        if (report_) report_(failure, "write the witness");
      }) {}

IOStatus LedgerFileSystem::MarkOpening(std::vector<std::string>* removed) {
  IOStatus status = CheckOurs();
  const std::lock_guard lock(mutex_);
  marked_ = true;
  return status.ok() ? mark_.Begin([this] { return CheckOurs(); }, removed) : status;
}

void LedgerFileSystem::BeginOpen() {
  const std::lock_guard lock(mutex_);
  NOWCALLS_CHECK(!opening_);
  opening_ = true;
}

IOStatus LedgerFileSystem::CheckOurs() const {
  const Status ours = lock_->CheckStillOurs();
  if (ours.ok()) return IOStatus::OK();
  return IOStatus::IOFenced(ours.message());
}

// The directory stays open: a failure ends the server, so it must not come from a lack of
// descriptors.
IOStatus LedgerFileSystem::SyncDirectory() {
  {
    const std::lock_guard lock(directory_mutex_);
    if (directory_ == nullptr) {
      IOStatus status =
          target()->NewDirectory(lock_->ledger_dir(), IOOptions(), &directory_, nullptr);
      if (!status.ok()) return status;
    }
  }
  return directory_->Fsync(IOOptions(), nullptr);
}

// RocksDB may sync the directory next and would not hear of this failure.
IOStatus LedgerFileSystem::SyncDirectoryOrReport() {
  IOStatus status = SyncDirectory();
  if (!status.ok() && report_) report_(status, "sync the ledger's directory");
  return status;
}

// RocksDB syncs the directory once for the manifest's name and CURRENT. A file system that reorders
// them could leave CURRENT naming an absent file, so the directory is synced before, too.
IOStatus LedgerFileSystem::ReplaceCurrent() {
  IOStatus status = SyncDirectory();
  if (!status.ok()) return status;
  // From here on CURRENT may name the new manifest, even if the rename fails.
  replaced_ = true;
  status = target()->RenameFile(next_current_, current_path_, IOOptions(), nullptr);
  if (!status.ok()) return status;
  next_current_.clear();
  return SyncDirectory();
}

IOStatus LedgerFileSystem::Accept(uint64_t batch_number, bool unsynced) {
  const std::lock_guard lock(mutex_);
  if (!accepted_.ok()) return accepted_;
  accepted_ = CheckOurs();
  // The mark must be durably gone before CURRENT is replaced, which syncs the directory first.
  if (accepted_.ok() && std::exchange(marked_, false)) accepted_ = mark_.Remove();
  // Order: the new witness beside the old one, then CURRENT, then the old witness. Each kill in
  // between leaves a manifest with its witness.
  begun_ = logged_ = committed_ = batch_number;
  {
    const std::lock_guard logs_lock(logs_mutex_);
    for (auto& [number, first] : first_batches_) first = batch_number + 1;
    unsynced_ = unsynced;
    witness_.SetLogs(first_batches_.empty() ? 0 : first_batches_.begin()->first, unsynced);
  }
  if (accepted_.ok()) accepted_ = witness_.Prepare(batch_number);
  if (accepted_.ok() && opening_ && !next_current_.empty()) {
    accepted_ = ReplaceCurrent();
    if (!replaced_) witness_.Withdraw();
  }
  if (accepted_.ok()) accepted_ = witness_.Begin();
  IOStatus status = accepted_;
  if (!status.ok()) return status;
  // The ledger is what this open made of it: delete obsolete files.
  opening_ = false;
  made_.clear();
  for (std::string& path : spares_.LeftOver()) doomed_.insert(std::move(path));
  // The next open deletes what cannot be deleted now.
  for (const std::string& path : std::exchange(doomed_, {})) {
    if (!CheckOurs().ok()) break;
    freed_.Delete(path, IOOptions(), nullptr).PermitUncheckedError();
  }
  views_->SetState(LogViews::State::kBeingWritten);
  return status;
}

std::map<uint64_t, uint64_t> LedgerFileSystem::LogBytes() {
  const std::lock_guard logs_lock(logs_mutex_);
  std::map<uint64_t, uint64_t> logs = closed_logs_;
  if (first_batches_.contains(newest_log_)) logs[newest_log_] = newest_log_bytes_;
  return logs;
}

std::string LedgerFileSystem::FindHarmedLog() {
  // A cut log grows again, with zeros in place of its loss. No log has a zero as the type of its
  // first piece, or at the end of a batch.
  constexpr uint64_t kTypeOffset = 6;
  std::map<uint64_t, uint64_t> logs = LogBytes();
  for (const auto& [number, bytes] : logs) {
    const std::string path = lock_->ledger_dir() + "/" + LogName(number);
    const uint64_t batch_end = looked_logs_[number];
    uint64_t size = 0;
    const IOStatus looked = disk()->GetFileSize(path, IOOptions(), &size, nullptr);
    std::string harm;
    if (IsAbsent(looked)) {
      harm = " was removed";
    } else if (looked.ok() && size < bytes) {
      harm = " was cut to " + std::to_string(size) + " bytes, of " + std::to_string(bytes);
    } else if ((bytes > 0 && HasZeroAt(disk(), path, kTypeOffset)) ||
               (batch_end > 0 && HasZeroAt(disk(), path, batch_end - 1))) {
      harm = " was cut, and has zeros in place of batches";
    }
    // RocksDB may have deleted it since.
    if (!harm.empty() && LogBytes().contains(number)) return path + harm;
  }
  looked_logs_ = std::move(logs);
  return {};
}

void LedgerFileSystem::Committed(uint64_t batch_number, bool durable) {
  committed_ = batch_number;
  if (durable) witness_.Advance(batch_number);
}

void LedgerFileSystem::StopHelpers() {
  spares_.Stop();
  freed_.Stop();
  witness_.Stop();
}

void LedgerFileSystem::Undo() {
  const std::lock_guard lock(mutex_);
  const bool marked = std::exchange(marked_, false);
  if (!std::exchange(opening_, false) && !marked) return;
  doomed_.clear();
  if (replaced_) return;
  if (!next_current_.empty()) made_.insert(std::exchange(next_current_, {}));
  for (const std::string& path : std::exchange(made_, {})) {
    if (!CheckOurs().ok()) return;
    target()->DeleteFile(path, IOOptions(), nullptr).PermitUncheckedError();
  }
  // The mark last: it tells what is to be removed.
  if (marked && CheckOurs().ok()) mark_.Remove().PermitUncheckedError();
}

IOStatus LedgerFileSystem::NewLog(const std::string& path, const rocksdb::FileOptions& options,
                                  std::unique_ptr<rocksdb::FSWritableFile>* file,
                                  IODebugContext* context) {
  std::unique_ptr<rocksdb::FSWritableFile> made;
  uint64_t zeros = 0;
  IOStatus status = spares_.Take(path, options, &made, &zeros);
  if (status.IsNotFound()) {
    status = FileSystemWrapper::NewWritableFile(path, options, &made, context);
  }
  if (status.ok()) {
    const uint64_t number = LogNumber(path);
    *file = std::make_unique<LogFile>(
        std::move(made), zeros, &spares_,
        LogFile::Events{.appended = [this, number](uint64_t bytes) { LogAppended(number, bytes); },
                        .synced = [this, number] { LogSynced(number); },
                        .closed = [this, number](uint64_t bytes) { LogClosed(number, bytes); }});
  }
  return status;
}

IOStatus LedgerFileSystem::NewWritableFile(const std::string& path,
                                           const rocksdb::FileOptions& options,
                                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                                           IODebugContext* context) {
  IOStatus status = CheckOurs();
  if (!status.ok()) return status;
  // Make the file, and note it if the open may be undone.
  const std::lock_guard lock(mutex_);
  // A killed process may have left a temporary file of this name.
  const bool made = opening_ && target()->FileExists(path, IOOptions(), nullptr).IsNotFound();
  status = IsLog(path) ? NewLog(path, options, file, context)
                       : FileSystemWrapper::NewWritableFile(path, options, file, context);
  if (made && status.ok()) {
    made_.insert(path);
    status = mark_.Made(path);
  }
  doomed_.erase(path);
  if (!status.ok()) return status;
  // Follow the file by its kind. RocksDB begins a log before it writes a batch to it, on the
  // committing thread or, for a backup, on another. There the last batch may not be Committed yet;
  // logged_ has it.
  if (IsLog(path)) {
    const std::lock_guard logs_lock(logs_mutex_);
    first_batches_[LogNumber(path)] = opening_ ? 0 : logged_ + 1;
    newest_log_bytes_ = 0;
    newest_log_ = first_batches_.rbegin()->first;
  }
  if (IsTable(path)) *file = std::make_unique<TableFile>(std::move(*file));
  if (const uint64_t number = ManifestNumber(path); number != 0) {
    *file = std::make_unique<ManifestFile>(std::move(*file), [this, number](uint64_t bytes) {
      witness_.SetManifest(number, bytes);
      WitnessSyncedLogs();
    });
  }
  return status;
}

IOStatus LedgerFileSystem::ReopenWritableFile(const std::string& path,
                                              const rocksdb::FileOptions& options,
                                              std::unique_ptr<rocksdb::FSWritableFile>* file,
                                              IODebugContext* context) {
  IOStatus status = CheckOurs();
  if (!status.ok()) return status;
  const std::lock_guard lock(mutex_);
  if (!opening_ || !IsLog(path)) {
    return FileSystemWrapper::ReopenWritableFile(path, options, file, context);
  }
  *file = std::make_unique<UntouchedFile>();
  return status;
}

IOStatus LedgerFileSystem::RenameFile(const std::string& from, const std::string& to,
                                      const IOOptions& options, IODebugContext* context) {
  IOStatus status = CheckOurs();
  if (!status.ok()) return status;
  const std::lock_guard lock(mutex_);
  const bool made = made_.erase(from) > 0;
  // CURRENT stays for now; the latest rename is done by Accept.
  if (opening_ && to == current_path_) {
    if (!next_current_.empty()) made_.insert(next_current_);
    next_current_ = from;
    return IOStatus::OK();
  }
  if (to == current_path_) status = SyncDirectory();
  if (status.ok()) status = FileSystemWrapper::RenameFile(from, to, options, context);
  if (!made) return status;
  made_.insert(status.ok() ? to : from);
  return status.ok() ? mark_.Made(to) : status;
}

IOStatus LedgerFileSystem::DeleteFile(const std::string& path, const IOOptions& options,
                                      IODebugContext* context) {
  IOStatus status = CheckOurs();
  if (!status.ok()) return status;
  LogsBehind behind;
  {
    // Files that this open made are deleted at once, older ones by Accept.
    const std::lock_guard lock(mutex_);
    if (opening_ && made_.erase(path) == 0) {
      doomed_.insert(path);
      return IOStatus::OK();
    }
    if (IsLog(path) && !opening_) behind = ForgetLog(LogNumber(path));
  }
  // Without mutex_: the committing thread needs it to begin a log. The witness first: it must know
  // before the log goes.
  status =
      witness_.RaiseFloor(behind.first_batch == 0 ? 0 : behind.first_batch - 1, behind.first_log);
  if (!status.ok()) return status;
  if (behind.closed_bytes.has_value() && spares_.Reuse(path, *behind.closed_bytes)) return status;
  return freed_.Delete(path, options, context);
}

IOStatus LedgerFileSystem::CreateDirIfMissing(const std::string& path, const IOOptions& options,
                                              IODebugContext* context) {
  // RocksDB would look, and call a failed look a file in the directory's place. LOCK is held in it,
  // so it exists.
  if (path == lock_->ledger_dir()) return CheckOurs();
  return FileSystemWrapper::CreateDirIfMissing(path, options, context);
}

IOStatus LedgerFileSystem::LockFile(const std::string& path, const IOOptions& options,
                                    rocksdb::FileLock** lock, IODebugContext* context) {
  if (path != lock_->ledger_dir() + "/LOCK") {
    return FileSystemWrapper::LockFile(path, options, lock, context);
  }
  // RocksDB is told that it has the lock. A lock of its own would end when it closes LOCK, before
  // Undo and StopHelpers.
  *lock = &shown_lock_;
  return CheckOurs();
}

IOStatus LedgerFileSystem::UnlockFile(rocksdb::FileLock* lock, const IOOptions& options,
                                      IODebugContext* context) {
  if (lock == &shown_lock_) return IOStatus::OK();
  return FileSystemWrapper::UnlockFile(lock, options, context);
}

void LedgerFileSystem::LogClosed(uint64_t number, uint64_t bytes) {
  const std::lock_guard logs_lock(logs_mutex_);
  // RocksDB may have deleted the log already.
  if (first_batches_.contains(number)) closed_logs_[number] = bytes;
}

void LedgerFileSystem::LogAppended(uint64_t number, uint64_t bytes) {
  logged_ = begun_.load();
  if (number == newest_log_) newest_log_bytes_ = bytes;
  notice_.OnAppended(number);
}

// All of log `number` so far is on disk.
void LedgerFileSystem::LogSynced(uint64_t number) {
  {
    const std::lock_guard logs_lock(logs_mutex_);
    const bool closed = !first_batches_.empty() && number < first_batches_.rbegin()->first;
    if (unsynced_ && closed) synced_logs_.insert(number);
  }
  notice_.OnSynced(number);
}

// RocksDB syncs closed logs before the manifest names their data.
void LedgerFileSystem::WitnessSyncedLogs() {
  uint64_t batch = 0;
  {
    const std::lock_guard logs_lock(logs_mutex_);
    // All batches before the first log that is not synced are on disk.
    for (const auto& [number, first] : first_batches_) {
      if (first > 0) batch = first - 1;
      if (!synced_logs_.contains(number)) break;
    }
    if (!unsynced_ || batch <= synced_to_) return;
    synced_to_ = batch;
  }
  // The logs' names must be on disk, too.
  if (SyncDirectoryOrReport().ok()) witness_.Advance(batch);
}

LedgerFileSystem::LogsBehind LedgerFileSystem::ForgetLog(uint64_t number) {
  const std::lock_guard logs_lock(logs_mutex_);
  LogsBehind behind;
  if (const auto closed = closed_logs_.extract(number)) behind.closed_bytes = closed.mapped();
  first_batches_.erase(number);
  synced_logs_.erase(number);
  const auto next = first_batches_.upper_bound(number);
  if (next == first_batches_.end()) return behind;
  behind.first_log = next->first;
  behind.first_batch = next->second;
  return behind;
}

}  // namespace nowcalls::store
