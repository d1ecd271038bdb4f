#include "store/disk/freed_files.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/background_thread.h"
#include "store/disk/file_use.h"

namespace nowcalls::store {
namespace {

using rocksdb::IOOptions;
using rocksdb::IOStatus;

// Smaller pieces took longer in all: where freeing is slow, each call is slow.
constexpr uint64_t kFreedPieceBytes = 2 * 1024 * 1024;

// Smaller files are not worth a pause; more files would take too many descriptors.
constexpr uint64_t kBytesMin = 2 * kFreedPieceBytes;
constexpr size_t kFilesMax = 32;

}  // namespace

std::chrono::microseconds FreePause(uint64_t bytes) {
  constexpr std::chrono::microseconds kAll{2'000'000};
  constexpr std::chrono::microseconds kLongest{64'000};
  return std::min(kLongest,
                  kAll / std::max<int64_t>(1, static_cast<int64_t>(bytes / kFreedPieceBytes)));
}

FreedFiles::FreedFiles(std::shared_ptr<rocksdb::FileSystem> files,
                       std::function<IOStatus()> sync_names)
    : files_(std::move(files)), sync_names_(std::move(sync_names)) {}

FreedFiles::~FreedFiles() { Stop(); }

// -1: small or in use: delete at once.
// The file must be open before its name goes: the descriptor keeps its blocks.
int FreedFiles::OpenIfLarge(const std::string& path, uint64_t* bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_ || at_once_ || files_left_ >= kFilesMax) return -1;
  }
  const int fd = open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  struct stat status {};
  if (fstat(fd, &status) == 0) *bytes = static_cast<uint64_t>(status.st_size);
  if (*bytes >= kBytesMin) return fd;
  close(fd);
  return -1;
}

IOStatus FreedFiles::Delete(const std::string& path, const IOOptions& options,
                            rocksdb::IODebugContext* context) {
  uint64_t bytes = 0;
  const int fd = OpenIfLarge(path, &bytes);
  IOStatus status = files_->DeleteFile(path, options, context);
  if (fd < 0) return status;
  if (status.ok()) {
    Take({.fd = fd, .bytes = bytes});
  } else {
    close(fd);
  }
  return status;
}

void FreedFiles::Take(Freed freed) {
  {
    const std::lock_guard lock(mutex_);
    if (!stop_ && !thread_.joinable()) {
      try {
        thread_ = std::thread([this] { Run(); });
        pthread_setname_np(thread_.native_handle(), "nc-free");
      } catch (const std::system_error&) {
        // Without a thread, files are deleted as usual: slower syncs, nothing lost.
        stop_ = true;
      }
    }
    if (!stop_) {
      bytes_left_ += freed.bytes;
      ++files_left_;
      waiting_.push_back(freed);
      freed.fd = -1;
    }
  }
  if (freed.fd >= 0) close(freed.fd);
  changed_.notify_all();
}

uint64_t FreedFiles::bytes_left() {
  const std::lock_guard lock(mutex_);
  return bytes_left_;
}

void FreedFiles::Run() {
  UseCpusOfProcess();  // The commit thread may have started this one.
  StepBack();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    if (stop_) return;
    std::deque<Freed> batch = std::exchange(waiting_, {});
    lock.unlock();
    // A power cut must not bring back the name of a file that was cut. If the sync of names fails,
    // nothing is cut.
    const bool gone = sync_names_().ok();
    for (const Freed& freed : batch) {
      // A reader or a backup that has the file open keeps its bytes; its last close frees them.
      const bool alone = gone && IsUsedOnlyHere(freed.fd, 0);
      CutAndClose(freed, alone ? freed.bytes : 0);
    }
    lock.lock();
  }
}

void FreedFiles::CutAndClose(const Freed& freed, uint64_t bytes_to_cut) {
  uint64_t left = freed.bytes;
  while (bytes_to_cut > 0 && Pause()) {
    const uint64_t piece = std::min(bytes_to_cut, kFreedPieceBytes);
    bytes_to_cut -= piece;
    // A failed cut is no failure: close() frees the rest at once.
    if (ftruncate(freed.fd, static_cast<off_t>(bytes_to_cut)) != 0) break;
    left -= piece;
    const std::lock_guard lock(mutex_);
    bytes_left_ -= piece;
  }
  close(freed.fd);
  const std::lock_guard lock(mutex_);
  bytes_left_ -= left;
  --files_left_;
}

// False: stop.
bool FreedFiles::Pause() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, FreePause(bytes_left_), [this] { return stop_ || at_once_; });
  return !stop_;
}

void FreedFiles::FreeAtOnce(bool on) {
  {
    const std::lock_guard lock(mutex_);
    if (on == at_once_) return;
    at_once_ = on;
  }
  changed_.notify_all();
}

void FreedFiles::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  // Closing frees the blocks at once; nobody waits for a quick sync any more.
  for (const Freed& freed : std::exchange(waiting_, {})) close(freed.fd);
  bytes_left_ = 0;
}

}  // namespace nowcalls::store
