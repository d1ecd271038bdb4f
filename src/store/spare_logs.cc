#include "store/spare_logs.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/process_cpus.h"
#include "store/file_use.h"

namespace nowcalls::store {
namespace {

using rocksdb::IOOptions;
using rocksdb::IOStatus;

// Small pieces with pauses, so that no commit waits long behind one of them.
constexpr size_t kPieceBytes = 256 * 1024;

// A disk with less room than for so many is left alone.
constexpr uint64_t kRoomForSpares = 16;

// A log that outgrew its spare is not used again if it is longer than so many.
constexpr uint64_t kReusedMax = 2;

constexpr int64_t kRetryNs = 60'000'000'000;

}  // namespace

std::chrono::microseconds SparePause(uint64_t zeros, uint64_t log_bytes) {
  // At most 1 GB a second, and 10 MB a second.
  constexpr std::chrono::microseconds kShort{250};
  constexpr std::chrono::microseconds kLong{24'000};
  return zeros < 2 * log_bytes ? kShort : kLong;
}

SpareLogs::SpareLogs(std::shared_ptr<rocksdb::FileSystem> files, const LedgerLock* lock,
                     uint64_t bytes, std::function<IOStatus()> sync_names,
                     std::shared_ptr<rocksdb::Logger> log)
    : files_(std::move(files)),
      lock_(lock),
      path_(lock->ledger_dir() + "/spare_log"),
      bytes_(bytes),
      sync_names_(std::move(sync_names)),
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
  UseCpusOfProcess();  // It may be the commit thread that has started this one.
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return asked_ || stop_; });
    if (stop_) return;
    lock.unlock();
    uint64_t zeros = 0;
    const IOStatus made = Make(&zeros);
    if (!made.ok()) Remove(path_);
    lock.lock();
    asked_ = false;
    ready_ = made.ok() && !stop_;
    ready_zeros_ = zeros;
    if (made.ok() || stop_) continue;
    not_before_ns_ = MonotonicNs() + kRetryNs;
    rocksdb::Info(log_.get(), "no spare log: %s", made.ToString().c_str());
  }
}

bool SpareLogs::PauseBehind(uint64_t zeros) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, SparePause(zeros, log_bytes_), [this] { return stop_; });
}

IOStatus SpareLogs::CheckRoom() const {
  uint64_t free_bytes = 0;
  const IOStatus status =
      files_->GetFreeSpace(lock_->ledger_dir(), IOOptions(), &free_bytes, nullptr);
  if (!status.ok() || free_bytes >= kRoomForSpares * bytes_) return IOStatus::OK();
  return IOStatus::NoSpace("only " + std::to_string(free_bytes) + " bytes are free");
}

std::optional<SpareLogs::Used> SpareLogs::NextUsed() {
  const std::lock_guard lock(mutex_);
  if (used_.empty()) return std::nullopt;
  const Used used = used_.back();
  used_.pop_back();
  return used;
}

void SpareLogs::Discard(const Used& used) {
  Remove(UsedPath(used.place));
  FreePlace(used.place);
}

IOStatus SpareLogs::Make(uint64_t* zeros) {
  const Status ours = lock_->CheckStillOurs();
  if (!ours.ok()) return IOStatus::IOFenced(ours.message());
  IOStatus status = CheckRoom();
  while (const std::optional<Used> used = NextUsed()) {
    uint64_t bytes = 0;
    if (status.ok()) status = Renew(*used, &bytes);
    Discard(*used);
    *zeros = std::max(bytes, bytes_);
    if (bytes > 0) return status;
  }
  *zeros = bytes_;
  return status.ok() ? MakeNew() : status;
}

IOStatus SpareLogs::MakeNew() {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  IOStatus status = files_->NewWritableFile(path_, rocksdb::FileOptions(), &file, nullptr);
  if (!status.ok()) return status;
  // All of it at once, to be in one place on the disk, and to fail before anything is written.
  status = file->Allocate(0, bytes_, IOOptions(), nullptr);
  return status.IsNoSpace() ? status : Fill(bytes_, bytes_, file.get());
}

IOStatus SpareLogs::Renew(const Used& used, uint64_t* bytes) {
  // What was in the log goes only when its old name is gone for good: a power cut would show the
  // log without it. And not while somebody reads it, who opened it by that name.
  IOStatus status = sync_names_();
  if (!status.ok() || !IsUnused(UsedPath(used.place), bytes) || *bytes < used.written) {
    *bytes = 0;
    return status;
  }
  std::unique_ptr<rocksdb::FSWritableFile> file;
  status = files_->ReuseWritableFile(path_, UsedPath(used.place), rocksdb::FileOptions(), &file,
                                     nullptr);
  if (!status.ok()) return status;
  if (*bytes >= bytes_) return Fill(used.written, *bytes, file.get());
  return Fill(bytes_, bytes_, file.get());
}

// Through the page cache, so that the log finds its pages there and need not read them first.
IOStatus SpareLogs::Fill(uint64_t bytes, uint64_t size, rocksdb::FSWritableFile* file) {
  const std::vector<char> zeros(kPieceBytes);
  IOStatus status;
  for (uint64_t at = 0; at < bytes && status.ok();) {
    const size_t piece = std::min<uint64_t>(zeros.size(), bytes - at);
    status = file->Append({zeros.data(), piece}, IOOptions(), nullptr);
    if (status.ok()) status = file->RangeSync(at, piece, IOOptions(), nullptr);
    at += piece;
    if (status.ok() && !PauseBehind(size - bytes + at)) {
      status = IOStatus::Aborted("the ledger is being closed");
    }
  }
  if (status.ok()) status = file->Sync(IOOptions(), nullptr);
  IOStatus closed = file->Close(IOOptions(), nullptr);
  return status.ok() ? closed : status;
}

IOStatus SpareLogs::Take(const std::string& path, const rocksdb::FileOptions& options,
                         std::unique_ptr<rocksdb::FSWritableFile>* file, uint64_t* zeros) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(ready_, false)) return IOStatus::NotFound("no spare log");
  std::unique_ptr<rocksdb::FSWritableFile> taken;
  if (!files_->ReuseWritableFile(path, path_, options, &taken, nullptr).ok()) {
    return IOStatus::NotFound("no spare log");
  }
  // RocksDB syncs the directory with the first batch, but as for a file that is new: it knows file
  // systems where that is not enough for a file that was renamed.
  IOStatus status = sync_names_();
  if (!status.ok()) return status;
  *file = std::move(taken);
  *zeros = ready_zeros_;
  return status;
}

std::optional<size_t> SpareLogs::ReservePlace() {
  const std::lock_guard lock(mutex_);
  if (bytes_ == 0 || stop_ || stopping_) return std::nullopt;
  for (size_t place = 0; place < kUsedMax; ++place) {
    if (!std::exchange(places_taken_[place], true)) return place;
  }
  return std::nullopt;
}

void SpareLogs::FreePlace(size_t place) {
  const std::lock_guard lock(mutex_);
  places_taken_[place] = false;
}

bool SpareLogs::Reuse(const std::string& path, uint64_t written) {
  if (written > kReusedMax * bytes_ || !CheckRoom().ok()) return false;
  const std::optional<size_t> place = ReservePlace();
  if (!place.has_value()) return false;
  if (!files_->RenameFile(path, UsedPath(*place), IOOptions(), nullptr).ok()) {
    FreePlace(*place);
    return false;
  }
  const std::lock_guard lock(mutex_);
  used_.push_back({.place = *place, .written = written});
  return true;
}

void SpareLogs::Remove(const std::string& path) const {
  if (!lock_->CheckStillOurs().ok()) return;
  files_->DeleteFile(path, IOOptions(), nullptr).PermitUncheckedError();
}

std::vector<std::string> SpareLogs::LeftOver() const {
  std::vector<std::string> paths = {path_};
  for (size_t place = 0; place < kUsedMax; ++place) paths.push_back(UsedPath(place));
  std::erase_if(paths, [this](const std::string& path) {
    return !files_->FileExists(path, IOOptions(), nullptr).ok();
  });
  return paths;
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
  if (made) Remove(path_);
  while (const std::optional<Used> used = NextUsed()) Discard(*used);
}

}  // namespace nowcalls::store
