#include "store/log/spare_logs.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
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

// Small pieces with pauses: no commit waits long behind one.
constexpr size_t kZerosBytes = 256 * 1024;

// Without room for so many spares, none is made.
constexpr uint64_t kRoomForSpares = 16;

// A log longer than so many spares outgrew its own and is not reused.
constexpr uint64_t kReusedMax = 2;

constexpr int64_t kRetryNs = 60'000'000'000;

constexpr std::string_view kNamePrefix = "spare_log";

// "spare_log" or "spare_log.N": earlier versions had several.
bool IsOurName(std::string_view name) {
  if (!name.starts_with(kNamePrefix)) return false;
  name.remove_prefix(kNamePrefix.size());
  if (name.empty()) return true;
  return name.size() > 1 && name[0] == '.' &&
         name.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

}  // namespace

std::chrono::microseconds SparePause(uint64_t zeros, uint64_t log_bytes) {
  // At most 1 GB/s while the spare is behind four times the log's length, else 10 MB/s. A late
  // spare serves a later log.
  constexpr std::chrono::microseconds kShort{250};
  constexpr std::chrono::microseconds kLong{24'000};
  return zeros < 4 * log_bytes ? kShort : kLong;
}

SpareLogs::SpareLogs(std::shared_ptr<rocksdb::FileSystem> files, const LedgerLock* lock,
                     uint64_t bytes, std::function<IOStatus()> sync_names,
                     std::shared_ptr<rocksdb::Logger> log)
    : files_(std::move(files)),
      lock_(lock),
      path_(lock->ledger_dir() + "/" + std::string(kNamePrefix)),
      used_path_(path_ + ".1"),
      bytes_(bytes),
      sync_names_(std::move(sync_names)),
      log_(std::move(log)) {}

SpareLogs::~SpareLogs() { Stop(); }

void SpareLogs::Ask() {
  {
    const std::lock_guard lock(mutex_);
    if (bytes_ == 0 || stop_ || asked_ || ready_zeros_ > 0) return;
    if (MonotonicNs() < not_before_ns_) return;
    asked_ = true;
    // The first Ask starts the thread: a server that writes little has neither thread nor files.
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
  return ready_zeros_ > 0;
}

void SpareLogs::Run() {
  UseCpusOfProcess();  // The commit thread may have started this one.
  StepBack();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return asked_ || stop_; });
    if (stop_) return;
    uint64_t zeros = 0;
    lock.unlock();
    const IOStatus status = Make(&zeros);
    lock.lock();
    ready_zeros_ = zeros;
    asked_ = false;
    if (status.ok() || stop_) continue;
    not_before_ns_ = MonotonicNs() + kRetryNs;
    rocksdb::Info(log_.get(), "no spare log: %s", status.ToString().c_str());
  }
}

// False: stop.
bool SpareLogs::PauseBehind(uint64_t zeros) {
  std::unique_lock lock(mutex_);
  const auto pause = SparePause(zeros, log_bytes_);
  return !changed_.wait_for(lock, pause, [this] { return stop_; });
}

IOStatus SpareLogs::CheckRoom() const {
  uint64_t free_bytes = 0;
  const IOStatus status =
      files_->GetFreeSpace(lock_->ledger_dir(), IOOptions(), &free_bytes, nullptr);
  if (!status.ok() || free_bytes >= kRoomForSpares * bytes_) return IOStatus::OK();
  return IOStatus::NoSpace("only " + std::to_string(free_bytes) + " bytes are free");
}

// False: no former log waits. `written`: its bytes that are not zeros.
bool SpareLogs::TakeUsed(uint64_t* written) {
  const std::lock_guard lock(used_mutex_);
  if (!used_bytes_.has_value()) return false;
  *written = *std::exchange(used_bytes_, std::nullopt);
  return files_->RenameFile(used_path_, path_, IOOptions(), nullptr).ok();
}

// Makes the spare; `zeros`: its length.
//
// Order: a former log first, since freeing its blocks and taking new ones delays syncs of all
// files. Failure: the spare is removed, and Run waits a minute before the next try.
IOStatus SpareLogs::Make(uint64_t* zeros) {
  const Status ours = lock_->CheckStillOurs();
  if (!ours.ok()) return IOStatus::IOFenced(ours.message());
  uint64_t written = 0;
  const bool is_used = TakeUsed(&written);
  IOStatus status = CheckRoom();
  if (status.ok() && is_used) status = Renew(written, zeros);
  if (*zeros > 0) return status;
  if (is_used) Remove(path_);
  if (status.ok()) status = MakeNew();
  if (status.ok()) {
    *zeros = bytes_;
  } else {
    Remove(path_);
  }
  return status;
}

IOStatus SpareLogs::MakeNew() {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  IOStatus status = files_->NewWritableFile(path_, rocksdb::FileOptions(), &file, nullptr);
  if (!status.ok()) return status;
  // All at once: in one place on disk, and failing before anything is written. A file system that
  // cannot reserve fills the file all the same.
  status = file->Allocate(0, bytes_, IOOptions(), nullptr);
  return status.IsNoSpace() ? status : Fill(bytes_, bytes_, file.get());
}

// `zeros` stays 0 if the former log has a reader.
IOStatus SpareLogs::Renew(uint64_t written, uint64_t* zeros) {
  // The log's old name must be durably gone: a power cut could show the log without its content.
  IOStatus status = sync_names_();
  uint64_t bytes = 0;
  // A reader that opened the log by its old name keeps its bytes.
  if (!status.ok() || !IsUnused(path_, &bytes) || bytes < written) return status;
  std::unique_ptr<rocksdb::FSWritableFile> file;
  status = files_->ReuseWritableFile(path_, path_, rocksdb::FileOptions(), &file, nullptr);
  if (!status.ok()) return status;
  const bool is_long_enough = bytes >= bytes_;
  status = is_long_enough ? Fill(written, bytes, file.get()) : Fill(bytes_, bytes_, file.get());
  if (status.ok()) *zeros = std::max(bytes, bytes_);
  return status;
}

// Through the page cache: the log finds its pages there and need not read them first.
IOStatus SpareLogs::Fill(uint64_t bytes, uint64_t size, rocksdb::FSWritableFile* file) {
  const std::vector<char> zeros(kZerosBytes);
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
  if (ready_zeros_ == 0) return IOStatus::NotFound("no spare log");
  const uint64_t ready_zeros = std::exchange(ready_zeros_, 0);
  std::unique_ptr<rocksdb::FSWritableFile> taken;
  // A spare that cannot be renamed is not missed: RocksDB makes a new file.
  if (!files_->ReuseWritableFile(path, path_, options, &taken, nullptr).ok()) {
    Remove(path_);
    return IOStatus::NotFound("no spare log");
  }
  // RocksDB syncs the directory with the first batch, but as for a new file, which is not enough
  // for a rename on some file systems.
  IOStatus status = sync_names_();
  if (!status.ok()) return status;
  *file = std::move(taken);
  *zeros = ready_zeros;
  return status;
}

// The log waits under the name of used_path_ to become the spare.
bool SpareLogs::Reuse(const std::string& path, uint64_t written) {
  if (written > kReusedMax * bytes_ || !CheckRoom().ok()) return false;
  {
    const std::lock_guard lock(mutex_);
    if (bytes_ == 0 || stop_ || stopping_) return false;
  }
  const std::lock_guard lock(used_mutex_);
  // One waits at most: a second would only hold blocks.
  if (used_bytes_.has_value()) return false;
  if (!files_->RenameFile(path, used_path_, IOOptions(), nullptr).ok()) return false;
  used_bytes_ = written;
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
    if (IsOurName(name)) paths.push_back(lock_->ledger_dir() + "/" + name);
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
  if (std::exchange(ready_zeros_, 0) > 0) Remove(path_);
  const std::lock_guard lock(used_mutex_);
  if (std::exchange(used_bytes_, std::nullopt).has_value()) Remove(used_path_);
}

}  // namespace nowcalls::store
