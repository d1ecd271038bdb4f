// A library that is loaded before all others (LD_PRELOAD) and writes down what a program does to
// files (shim/file_calls.h). The calls below are those by which nowcalls, RocksDB and libstdc++
// change files; the program is the real one.
//
// Thread: any. One call at a time, so that the order of the lines is that of the calls. Without the
// file that the environment names it changes nothing.
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "shim/file_calls.h"
#include "shim/next_call.h"

namespace {

using namespace nowcalls::testing;  // NOLINT(google-build-using-namespace): the words of the log.

std::mutex calls_mutex;

int OpenLog() {
  static auto* const next = Next<int(const char*, int, ...)>("open");
  const char* path = std::getenv(kFileCallsVariable);
  constexpr mode_t kMode = 0600;
  return path == nullptr ? -1 : next(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kMode);
}

int Log() {
  static const int log = OpenLog();
  return log;
}

void Tell(const char* what, const char* path, const char* now = "") {
  static auto* const next = Next<ssize_t(int, const void*, size_t)>("write");
  static char line[2 * PATH_MAX + 64];
  const int error = errno;
  const int bytes = std::snprintf(line, sizeof(line), "%s\t%s\t%s\n", what, path, now);
  if (next(Log(), line, static_cast<size_t>(bytes)) != bytes) std::abort();
  errno = error;
}

// Of a file or a directory.
bool PathOf(int fd, Path* path) {
  struct stat info {};
  if (Log() < 0 || fstat(fd, &info) != 0) return false;
  return (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) && ReadLink(fd, path);
}

// Of a name that need not be there.
bool PathAt(int dir, const char* name, Path* path) {
  if (Log() < 0) return false;
  Path given;
  Path base = "";
  if (dir != AT_FDCWD && name[0] != '/') {
    if (!ReadLink(dir, &base)) return false;
    std::strncat(base, "/", sizeof(base) - std::strlen(base) - 1);
  } else if (std::strchr(name, '/') == nullptr) {
    std::snprintf(base, sizeof(base), "./");
  }
  if (std::snprintf(given, sizeof(given), "%s%s", base, name) >= PATH_MAX) return false;
  for (size_t end = std::strlen(given); end > 1 && given[end - 1] == '/'; --end) {
    given[end - 1] = '\0';
  }
  char* const slash = std::strrchr(given, '/');
  *slash = '\0';
  Path parent;
  if (realpath(slash == given ? "/" : given, parent) == nullptr) return false;
  return std::snprintf(*path, sizeof(*path), "%s/%s", parent, slash + 1) < PATH_MAX;
}

// `call` changes the file or directory behind `fd`, if it succeeds.
template <typename Call>
auto Changes(const char* what, int fd, const Call& call) {
  const std::lock_guard lock(calls_mutex);
  const auto result = call();
  Path path;
  if (result < 0 || !PathOf(fd, &path)) return result;
  Tell(fd == STDOUT_FILENO ? kSaid : what, path);
  return result;
}

// As Changes, for calls that may leave it as long as it was; then they leave its bytes, too.
template <typename Call>
int Resizes(int fd, const Call& call) {
  const std::lock_guard lock(calls_mutex);
  struct stat before {};
  struct stat after {};
  Path path;
  const bool known = PathOf(fd, &path) && fstat(fd, &before) == 0;
  const int result = call();
  if (result != 0 || !known || fstat(fd, &after) != 0 || before.st_size == after.st_size) {
    return result;
  }
  Tell(after.st_size < before.st_size ? kCut : kWrote, path);
  return result;
}

template <typename Call>
int Names(const char* what, int dir, const char* name, const Call& call) {
  const std::lock_guard lock(calls_mutex);
  Path path;
  const bool known = PathAt(dir, name, &path);
  const int result = call();
  if (result == 0 && known) Tell(what, path);
  return result;
}

template <typename Call>
int NamesAnew(const char* what, int from_dir, const char* from, int to_dir, const char* to,
              const Call& call) {
  const std::lock_guard lock(calls_mutex);
  Path old_path;
  Path path;
  const bool known = PathAt(from_dir, from, &old_path) && PathAt(to_dir, to, &path);
  const int result = call();
  if (result == 0 && known) Tell(what, old_path, path);
  return result;
}

template <typename Call>
auto Opens(int dir, const char* name, bool makes, bool empties, const Call& call) {
  const std::lock_guard lock(calls_mutex);
  struct stat before {};
  const bool was_there = fstatat(dir, name, &before, 0) == 0;
  const auto result = call();
  Path path;
  int fd = -1;
  if constexpr (std::is_pointer_v<decltype(result)>) {
    if (result != nullptr) fd = fileno(result);
  } else {
    fd = result;
  }
  if (fd < 0 || !PathOf(fd, &path)) return result;
  if (!was_there && makes) Tell(kMadeFile, path);
  if (was_there && empties && before.st_size > 0) Tell(kWrote, path);
  return result;
}

template <typename Call>
int OpensWith(int dir, const char* name, int flags, const Call& call) {
  return Opens(dir, name, (flags & O_CREAT) != 0, (flags & O_TRUNC) != 0, call);
}

template <typename Call>
FILE* OpensWith(const char* name, const char* modes, const Call& call) {
  return Opens(AT_FDCWD, name, modes[0] != 'r', modes[0] == 'w', call);
}

}  // namespace

// Parameters have the names that the C library's headers give them.
extern "C" {

int open(const char* file, int oflag, ...) {
  NOWCALLS_NEXT(open);
  NOWCALLS_MODE(oflag);
  return OpensWith(AT_FDCWD, file, oflag, [&] { return next(file, oflag, mode); });
}
int open64(const char* file, int oflag, ...) {
  NOWCALLS_NEXT(open64);
  NOWCALLS_MODE(oflag);
  return OpensWith(AT_FDCWD, file, oflag, [&] { return next(file, oflag, mode); });
}
int openat(int fd, const char* file, int oflag, ...) {
  NOWCALLS_NEXT(openat);
  NOWCALLS_MODE(oflag);
  return OpensWith(fd, file, oflag, [&] { return next(fd, file, oflag, mode); });
}
FILE* fopen(const char* filename, const char* modes) {
  NOWCALLS_NEXT(fopen);
  return OpensWith(filename, modes, [&] { return next(filename, modes); });
}
FILE* fopen64(const char* filename, const char* modes) {
  NOWCALLS_NEXT(fopen64);
  return OpensWith(filename, modes, [&] { return next(filename, modes); });
}

ssize_t write(int fd, const void* buf, size_t n) {
  NOWCALLS_NEXT(write);
  return Changes(kWrote, fd, [&] { return next(fd, buf, n); });
}
ssize_t writev(int fd, const iovec* iovec, int count) {
  NOWCALLS_NEXT(writev);
  return Changes(kWrote, fd, [&] { return next(fd, iovec, count); });
}
ssize_t pwrite(int fd, const void* buf, size_t n, off_t offset) {
  NOWCALLS_NEXT(pwrite);
  return Changes(kWrote, fd, [&] { return next(fd, buf, n, offset); });
}
ssize_t pwrite64(int fd, const void* buf, size_t n, off64_t offset) {
  NOWCALLS_NEXT(pwrite64);
  return Changes(kWrote, fd, [&] { return next(fd, buf, n, offset); });
}
ssize_t sendfile(int out_fd, int in_fd, off_t* offset, size_t count) noexcept {
  NOWCALLS_NEXT(sendfile);
  return Changes(kWrote, out_fd, [&] { return next(out_fd, in_fd, offset, count); });
}

int ftruncate(int fd, off_t length) noexcept {
  NOWCALLS_NEXT(ftruncate);
  return Resizes(fd, [&] { return next(fd, length); });
}
int fallocate(int fd, int mode, off_t offset, off_t len) {
  NOWCALLS_NEXT(fallocate);
  return Resizes(fd, [&] { return next(fd, mode, offset, len); });
}
int posix_fallocate(int fd, off_t offset, off_t len) {
  NOWCALLS_NEXT(posix_fallocate);
  return Resizes(fd, [&] { return next(fd, offset, len); });
}

int fdatasync(int fildes) {
  NOWCALLS_NEXT(fdatasync);
  return Changes(kSynced, fildes, [&] { return next(fildes); });
}
int fsync(int fd) {
  NOWCALLS_NEXT(fsync);
  return Changes(kSynced, fd, [&] { return next(fd); });
}

int mkdir(const char* path, mode_t mode) noexcept {
  NOWCALLS_NEXT(mkdir);
  return Names(kMadeDir, AT_FDCWD, path, [&] { return next(path, mode); });
}
int rmdir(const char* path) noexcept {
  NOWCALLS_NEXT(rmdir);
  return Names(kRemoved, AT_FDCWD, path, [&] { return next(path); });
}
int unlink(const char* name) noexcept {
  NOWCALLS_NEXT(unlink);
  return Names(kRemoved, AT_FDCWD, name, [&] { return next(name); });
}
int unlinkat(int fd, const char* name, int flag) noexcept {
  NOWCALLS_NEXT(unlinkat);
  return Names(kRemoved, fd, name, [&] { return next(fd, name, flag); });
}
int remove(const char* filename) noexcept {
  NOWCALLS_NEXT(remove);
  return Names(kRemoved, AT_FDCWD, filename, [&] { return next(filename); });
}
int link(const char* from, const char* to) noexcept {
  NOWCALLS_NEXT(link);
  return NamesAnew(kLinked, AT_FDCWD, from, AT_FDCWD, to, [&] { return next(from, to); });
}
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): theirs is a keyword.
int rename(const char* old, const char* now) noexcept {
  NOWCALLS_NEXT(rename);
  return NamesAnew(kRenamed, AT_FDCWD, old, AT_FDCWD, now, [&] { return next(old, now); });
}
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): theirs is a keyword.
int renameat(int oldfd, const char* old, int newfd, const char* now) noexcept {
  NOWCALLS_NEXT(renameat);
  return NamesAnew(kRenamed, oldfd, old, newfd, now, [&] { return next(oldfd, old, newfd, now); });
}

}  // extern "C"
