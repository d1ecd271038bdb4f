#include "store/rocks/info_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/clock.h"

// RocksDB's own logger asserts that no write follows a failed one: a full disk ended the server
// before it could report.

namespace nowcalls::store {
namespace {

constexpr char kName[] = "LOG";
constexpr std::string_view kOldPrefix = "LOG.old.";
// RocksDB prints its options in one call, a line each; some are long lists of paths.
constexpr size_t kLineBytesMax = 8 * 1024;

std::string OldName(int age) { return std::string(kOldPrefix) + std::to_string(age); }

std::string FormatLine(const char* format, va_list arguments) {
  char text[kLineBytesMax];
  const int size = std::vsnprintf(text, sizeof(text), format, arguments);
  std::string line = WallText(WallMs()) + " " + std::to_string(gettid()) + " ";
  if (size > 0) line.append(text, std::min<size_t>(static_cast<size_t>(size), sizeof(text) - 1));
  if (!line.ends_with('\n')) line += '\n';
  return line;
}

}  // namespace

// Descriptors are relative to the directory as opened: a directory that takes its place gets
// nothing. The LOG of the last start goes on, or many refused starts would wash out their cause.
InfoLog::InfoLog(const std::string& dir, size_t file_bytes_max)
    : file_bytes_max_(file_bytes_max),
      dir_fd_(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (!GoOn()) BeginFile();
  RemoveOlder();
}

InfoLog::~InfoLog() {
  if (fd_ >= 0) close(fd_);
  if (dir_fd_ >= 0) close(dir_fd_);
}

// Appends to the existing file. False: none, or full.
bool InfoLog::GoOn() {
  struct stat found {};
  fd_ = openat(dir_fd_, kName, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd_ < 0 || fstat(fd_, &found) != 0 || !S_ISREG(found.st_mode)) return false;
  file_bytes_ = static_cast<size_t>(found.st_size);
  return file_bytes_ < file_bytes_max_;
}

void InfoLog::BeginFile() {
  constexpr mode_t kMode = 0644;
  if (fd_ >= 0) close(std::exchange(fd_, -1));
  for (int age = kOldFiles; age > 1; --age) {
    renameat(dir_fd_, OldName(age - 1).c_str(), dir_fd_, OldName(age).c_str());
  }
  renameat(dir_fd_, kName, dir_fd_, OldName(1).c_str());
  fd_ = openat(dir_fd_, kName, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
               kMode);
  file_bytes_ = 0;
}

// Older versions left the log to RocksDB, which named files by time.
void InfoLog::RemoveOlder() const {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path dir = "/proc/self/fd/" + std::to_string(dir_fd_);
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (name.starts_with(kOldPrefix) && name.size() > OldName(kOldFiles).size()) {
      unlinkat(dir_fd_, name.c_str(), 0);
    }
  }
}

bool InfoLog::Write(std::string_view line) {
  const ssize_t size = write(fd_, line.data(), line.size());
  if (size > 0) file_bytes_ += static_cast<size_t>(size);
  return size == static_cast<ssize_t>(line.size());
}

void InfoLog::Logv(const char* format, va_list arguments) {
  std::string line = FormatLine(format, arguments);
  const std::lock_guard lock(mutex_);
  if (fd_ < 0) return;
  if (file_bytes_ + line.size() > file_bytes_max_) BeginFile();
  // A lost line is told once a line gets through.
  if (lost_ > 0) line.insert(0, "(" + std::to_string(lost_) + " lines were lost here)\n");
  lost_ = Write(line) ? 0 : lost_ + 1;
}

}  // namespace nowcalls::store
