#include "store/spare_logs.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <system_error>
#include <utility>
#include <vector>

#include "base/background_thread.h"
#include "base/clock.h"
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
  return zeros < 4 * log_bytes ? kShort : kLong;
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
  UseCpusOfProcess();  // It may be the commit thread that has started this one.
  StepBack();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return asked_ || stop_; });
    if (stop_) return;
    IOStatus status;
    while (status.ok() && !stop_ && WantsSpare()) {
      const bool name_taken = std::any_of(ready_.begin(), ready_.end(),
                                          [](const Spare& spare) { return !spare.place; });
      Spare made;
      lock.unlock();
      status = Make(name_taken, &made);
      lock.lock();
      if (!made.path.empty()) ready_.push_back(made);
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
  const Used used = used_.back();
  used_.pop_back();
  return used;
}

void SpareLogs::Discard(const Used& used) {
  Remove(UsedPath(used.place));
  FreePlace(used.place);
}

IOStatus SpareLogs::Make(bool name_taken, Spare* made) {
  const Status ours = lock_->CheckStillOurs();
  if (!ours.ok()) return IOStatus::IOFenced(ours.message());
  IOStatus status = CheckRoom();
  while (const std::optional<Used> used = NextUsed()) {
    const std::string path = name_taken ? UsedPath(used->place) : path_;
    uint64_t bytes = 0;
    if (status.ok()) status = Renew(*used, path, &bytes);
    if (status.ok() && bytes > 0) {
      *made = {.path = path, .zeros = std::max(bytes, bytes_)};
      if (name_taken) {
        made->place = used->place;
      } else {
        FreePlace(used->place);
      }
      return status;
    }
    Discard(*used);
    if (bytes > 0) break;
  }
  if (name_taken) return status;
  if (status.ok()) status = MakeNew();
  if (status.ok()) {
    *made = {.path = path_, .zeros = bytes_};
  } else {
    Remove(path_);
  }
  return status;
}

IOStatus SpareLogs::MakeNew() {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  IOStatus status = files_->NewWritableFile(path_, rocksdb::FileOptions(), &file, nullptr);
  if (!status.ok()) return status;
  // All of it at once, to be in one place on the disk, and to fail before anything is written.
  status = file->Allocate(0, bytes_, IOOptions(), nullptr);
  return status.IsNoSpace() ? status : Fill(bytes_, bytes_, file.get());
}

IOStatus SpareLogs::Renew(const Used& used, const std::string& path, uint64_t* bytes) {
  // What was in the log goes only when its old name is gone for good: a power cut would show the
  // log without it. And not while somebody reads it, who opened it by that name.
  IOStatus status = sync_names_();
  if (!status.ok() || !IsUnused(UsedPath(used.place), bytes) || *bytes < used.written) {
    *bytes = 0;
    return status;
  }
  std::unique_ptr<rocksdb::FSWritableFile> file;
  // Also where both are the same name.
  status =
      files_->ReuseWritableFile(path, UsedPath(used.place), rocksdb::FileOptions(), &file, nullptr);
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
  if (ready_.empty()) return IOStatus::NotFound("no spare log");
  const Spare spare = ready_.front();
  ready_.erase(ready_.begin());
  std::unique_ptr<rocksdb::FSWritableFile> taken;
  const bool used = files_->ReuseWritableFile(path, spare.path, options, &taken, nullptr).ok();
  if (spare.place.has_value()) places_taken_[*spare.place] = false;
  if (!used) {
    Remove(spare.path);
    return IOStatus::NotFound("no spare log");
  }
  // RocksDB syncs the directory with the first batch, but as for a file that is new: it knows file
  // systems where that is not enough for a file that was renamed.
  IOStatus status = sync_names_();
  if (!status.ok()) return status;
  *file = std::move(taken);
  *zeros = spare.zeros;
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
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (const Spare& spare : std::exchange(ready_, {})) Remove(spare.path);
  while (const std::optional<Used> used = NextUsed()) Discard(*used);
}

}  // namespace nowcalls::store
