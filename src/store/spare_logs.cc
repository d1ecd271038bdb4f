#include "store/spare_logs.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace nowcalls::store {
namespace {

using rocksdb::IOOptions;
using rocksdb::IOStatus;

// Small pieces with pauses, so that no commit waits long behind one of them.
constexpr size_t kPieceBytes = 64 * 1024;

// A disk with less room than for so many is left alone.
constexpr uint64_t kRoomForSpares = 16;

constexpr int64_t kRetryNs = 60'000'000'000;

}  // namespace

std::chrono::microseconds SparePause(uint64_t filled_bytes, uint64_t log_bytes) {
  // Some 200 MB a second, and 10 MB a second.
  constexpr std::chrono::microseconds kShort{250};
  constexpr std::chrono::microseconds kLong{6'000};
  return filled_bytes < 2 * log_bytes ? kShort : kLong;
}

SpareLogs::SpareLogs(std::shared_ptr<rocksdb::FileSystem> files, const LedgerLock* lock,
                     uint64_t bytes, std::shared_ptr<rocksdb::Logger> log)
    : files_(std::move(files)),
      lock_(lock),
      path_(lock->ledger_dir() + "/spare_log"),
      bytes_(bytes),
      log_(std::move(log)) {}

SpareLogs::~SpareLogs() { Stop(); }

void SpareLogs::Ask() {
  {
    const std::lock_guard lock(mutex_);
    if (bytes_ == 0 || stop_ || asked_ || ready_ || MonotonicNs() < not_before_ns_) return;
    asked_ = true;
    if (!thread_.joinable()) {
      try {
        thread_ = std::thread([this] { Run(); });
      } catch (const std::system_error&) {
        asked_ = false;
        not_before_ns_ = MonotonicNs() + kRetryNs;
        return;
      }
      pthread_setname_np(thread_.native_handle(), "nc-spare");
    }
  }
  changed_.notify_all();
}

bool SpareLogs::ready() {
  const std::lock_guard lock(mutex_);
  return ready_;
}

void SpareLogs::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return asked_ || stop_; });
    if (stop_) return;
    lock.unlock();
    const IOStatus made = Make();
    if (!made.ok()) Remove();
    lock.lock();
    asked_ = false;
    ready_ = made.ok() && !stop_;
    if (made.ok() || stop_) continue;
    not_before_ns_ = MonotonicNs() + kRetryNs;
    rocksdb::Info(log_.get(), "no spare log: %s", made.ToString().c_str());
  }
}

bool SpareLogs::PauseBehind(uint64_t filled_bytes) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, SparePause(filled_bytes, log_bytes_), [this] { return stop_; });
}

IOStatus SpareLogs::CheckRoom() const {
  uint64_t free_bytes = 0;
  const IOStatus status =
      files_->GetFreeSpace(lock_->ledger_dir(), IOOptions(), &free_bytes, nullptr);
  if (!status.ok() || free_bytes >= kRoomForSpares * bytes_) return IOStatus::OK();
  return IOStatus::NoSpace("only " + std::to_string(free_bytes) + " bytes are free");
}

IOStatus SpareLogs::Make() {
  const Status ours = lock_->CheckStillOurs();
  if (!ours.ok()) return IOStatus::IOFenced(ours.message());
  IOStatus status = CheckRoom();
  if (!status.ok()) return status;
  std::unique_ptr<rocksdb::FSWritableFile> file;
  status = files_->NewWritableFile(path_, rocksdb::FileOptions(), &file, nullptr);
  if (!status.ok()) return status;
  status = Fill(file.get());
  IOStatus closed = file->Close(IOOptions(), nullptr);
  return status.ok() ? closed : status;
}

// Through the page cache, so that the log finds its pages there and need not read them first.
IOStatus SpareLogs::Fill(rocksdb::FSWritableFile* file) {
  // All of it at once, to be in one place on the disk, and to fail before anything is written.
  IOStatus status = file->Allocate(0, bytes_, IOOptions(), nullptr);
  if (status.IsNoSpace()) return status;
  const std::vector<char> zeros(kPieceBytes);
  for (uint64_t at = 0; at < bytes_;) {
    const size_t piece = std::min<uint64_t>(zeros.size(), bytes_ - at);
    status = file->Append({zeros.data(), piece}, IOOptions(), nullptr);
    if (status.ok()) status = file->RangeSync(at, piece, IOOptions(), nullptr);
    if (!status.ok()) return status;
    at += piece;
    if (!PauseBehind(at)) return IOStatus::Aborted("the ledger is being closed");
  }
  return file->Sync(IOOptions(), nullptr);
}

IOStatus SpareLogs::Take(const std::string& path, const rocksdb::FileOptions& options,
                         std::unique_ptr<rocksdb::FSWritableFile>* file) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(ready_, false)) return IOStatus::NotFound("no spare log");
  std::unique_ptr<rocksdb::FSWritableFile> taken;
  if (!files_->ReuseWritableFile(path, path_, options, &taken, nullptr).ok()) {
    return IOStatus::NotFound("no spare log");
  }
  // RocksDB syncs the directory with the first batch, but as for a file that is new: it knows file
  // systems where that is not enough for a file that was renamed.
  std::unique_ptr<rocksdb::FSDirectory> dir;
  IOStatus status = files_->NewDirectory(lock_->ledger_dir(), IOOptions(), &dir, nullptr);
  if (status.ok()) status = dir->Fsync(IOOptions(), nullptr);
  if (status.ok()) *file = std::move(taken);
  return status;
}

void SpareLogs::Remove() {
  if (!lock_->CheckStillOurs().ok()) return;
  files_->DeleteFile(path_, IOOptions(), nullptr).PermitUncheckedError();
}

void SpareLogs::RemoveLeftOver() {
  if (files_->FileExists(path_, IOOptions(), nullptr).ok()) Remove();
}

void SpareLogs::Stop() {
  bool made = false;
  {
    const std::lock_guard lock(mutex_);
    made = thread_.joinable() && (ready_ || asked_);
    stop_ = true;
    ready_ = false;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (made) Remove();
}

}  // namespace nowcalls::store
