#include "store/log/spare_logs.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <system_error>
#include <utility>
#include <vector>

#include "base/background_thread.h"
#include "base/clock.h"
#include "store/disk/file_use.h"

namespace nowcalls::store {
namespace {

using rocksdb::IOOptions;
using rocksdb::IOStatus;

// Small pieces with pauses, so that no commit waits long behind a piece.
constexpr size_t kPieceBytes = 256 * 1024;

// Spares for which a disk must have room, or none is made.
constexpr uint64_t kRoomForSpares = 16;

// Spares: a log that outgrew its own and is longer than so many is not used again.
constexpr uint64_t kReusedMax = 2;

constexpr int64_t kRetryNs = 60'000'000'000;

constexpr std::string_view kNamePrefix = "spare_log";

}  // namespace

std::chrono::microseconds SparePause(uint64_t zeros, uint64_t log_bytes) {
  // At most 1 GB a second while the spares are behind the log, else 10 MB a second.
  constexpr std::chrono::microseconds kShort{250};
  constexpr std::chrono::microseconds kLong{24'000};
  return zeros < 4 * log_bytes ? kShort : kLong;
}

SpareLogs::SpareLogs(std::shared_ptr<rocksdb::FileSystem> files, const LedgerLock* lock,
                     uint64_t bytes, std::function<IOStatus()> sync_names,
                     std::shared_ptr<rocksdb::Logger> log)
    : files_(std::move(files)),
      lock_(lock),
      prefix_(lock->ledger_dir() + "/" + std::string(kNamePrefix) + "."),
      bytes_(bytes),
      sync_names_(std::move(sync_names)),
      log_(std::move(log)) {}

SpareLogs::~SpareLogs() { Stop(); }

void SpareLogs::Ask() {
  {
    const std::lock_guard lock(mutex_);
    if (bytes_ == 0 || stop_ || asked_ || !WantsSpare()) return;
    if (MonotonicNs() < not_before_ns_) return;
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
  return !ready_.empty();
}

bool SpareLogs::WantsSpare() const {
  return ready_.empty() || (ready_.size() < kSparesMax && !used_.empty());
}

uint64_t SpareLogs::zeros_ready() const {
  return std::accumulate(ready_.begin(), ready_.end(), uint64_t{0},
                         [](uint64_t sum, const Spare& spare) { return sum + spare.zeros; });
}

void SpareLogs::Run() {
  UseCpusOfProcess();  // The commit thread may have started this one.
  StepBack();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return asked_ || stop_; });
    if (stop_) return;
    IOStatus status;
    while (status.ok() && !stop_ && WantsSpare()) {
      const bool may_be_new = ready_.empty();
      Spare made;
      lock.unlock();
      status = Make(may_be_new, &made);
      lock.lock();
      if (!made.path.empty()) ready_.push_back(std::move(made));
    }
    asked_ = false;
    if (status.ok() || stop_) continue;
    not_before_ns_ = MonotonicNs() + kRetryNs;
    rocksdb::Info(log_.get(), "no spare log: %s", status.ToString().c_str());
  }
}

bool SpareLogs::PauseBehind(uint64_t zeros) {
  std::unique_lock lock(mutex_);
  const auto pause = SparePause(zeros_ready() + zeros, log_bytes_);
  return !changed_.wait_for(lock, pause, [this] { return stop_; });
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
  Used used = std::move(used_.front());
  used_.pop_front();
  return used;
}

IOStatus SpareLogs::Make(bool may_be_new, Spare* made) {
  const Status ours = lock_->CheckStillOurs();
  if (!ours.ok()) return IOStatus::IOFenced(ours.message());
  IOStatus status = CheckRoom();
  while (const std::optional<Used> used = NextUsed()) {
    if (status.ok()) status = Renew(*used, made);
    if (!made->path.empty()) return status;
    Remove(used->path);
  }
  return status.ok() && may_be_new ? MakeNew(made) : status;
}

IOStatus SpareLogs::MakeNew(Spare* made) {
  std::string path;
  {
    const std::lock_guard lock(mutex_);
    path = NewPath();
  }
  std::unique_ptr<rocksdb::FSWritableFile> file;
  IOStatus status = files_->NewWritableFile(path, rocksdb::FileOptions(), &file, nullptr);
  // All of it at once, to be in one place on the disk, and to fail before anything is written. A
  // file system that cannot reserve room fills the file all the same.
  if (status.ok()) {
    status = file->Allocate(0, bytes_, IOOptions(), nullptr);
    if (!status.IsNoSpace()) status = Fill(bytes_, bytes_, file.get());
  }
  if (status.ok()) {
    *made = {.path = std::move(path), .zeros = bytes_};
  } else {
    Remove(path);
  }
  return status;
}

IOStatus SpareLogs::Renew(const Used& used, Spare* made) {
  // The log's old name must be gone for good first: a power cut could show the log without what it
  // held.
  IOStatus status = sync_names_();
  uint64_t bytes = 0;
  // A reader that opened the log by its old name keeps it.
  if (!status.ok() || !IsUnused(used.path, &bytes) || bytes < used.written) return status;
  std::unique_ptr<rocksdb::FSWritableFile> file;
  status = files_->ReuseWritableFile(used.path, used.path, rocksdb::FileOptions(), &file, nullptr);
  if (!status.ok()) return status;
  const bool is_long_enough = bytes >= bytes_;
  status =
      is_long_enough ? Fill(used.written, bytes, file.get()) : Fill(bytes_, bytes_, file.get());
  if (status.ok()) *made = {.path = used.path, .zeros = std::max(bytes, bytes_)};
  return status;
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
  if (ready_.empty()) return IOStatus::NotFound("no spare log");
  const Spare spare = std::move(ready_.front());
  ready_.pop_front();
  std::unique_ptr<rocksdb::FSWritableFile> taken;
  if (!files_->ReuseWritableFile(path, spare.path, options, &taken, nullptr).ok()) {
    Remove(spare.path);
    return IOStatus::NotFound("no spare log");
  }
  // RocksDB syncs the directory with the first batch, but as for a new file. It knows file systems
  // where that is not enough for a renamed one.
  IOStatus status = sync_names_();
  if (!status.ok()) return status;
  *file = std::move(taken);
  *zeros = spare.zeros;
  return status;
}

bool SpareLogs::Reuse(const std::string& path, uint64_t written) {
  if (written > kReusedMax * bytes_ || !CheckRoom().ok()) return false;
  Used used{.path = {}, .written = written};
  {
    const std::lock_guard lock(mutex_);
    if (bytes_ == 0 || stop_ || stopping_ || used_.size() >= kUsedMax) return false;
    used.path = NewPath();
  }
  if (!files_->RenameFile(path, used.path, IOOptions(), nullptr).ok()) return false;
  const std::lock_guard lock(mutex_);
  used_.push_back(std::move(used));
  return true;
}

void SpareLogs::Remove(const std::string& path) const {
  if (!lock_->CheckStillOurs().ok()) return;
  files_->DeleteFile(path, IOOptions(), nullptr).PermitUncheckedError();
}

std::vector<std::string> SpareLogs::LeftOver() const {
  std::vector<std::string> names;
  files_->GetChildren(lock_->ledger_dir(), IOOptions(), &names, nullptr).PermitUncheckedError();
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    if (name.starts_with(kNamePrefix)) paths.push_back(lock_->ledger_dir() + "/" + name);
  }
  return paths;
}

void SpareLogs::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (const Spare& spare : std::exchange(ready_, {})) Remove(spare.path);
  while (const std::optional<Used> used = NextUsed()) Remove(used->path);
}

}  // namespace nowcalls::store
