// A library that is loaded before all others (LD_PRELOAD) and lets one call of the system fail: the
// n-th of those that a program makes on a directory and what is in it (shim/failing_call.h). The
// calls below are those by which nowcalls, RocksDB and libstdc++ use files; all others work.
//
// Thread: any.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "shim/failing_call.h"
#include "shim/next_call.h"

namespace {

using namespace nowcalls::testing;  // NOLINT(google-build-using-namespace): the settings.

uint64_t Setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? 0 : std::strtoull(value, nullptr, 10);
}

std::atomic<uint64_t> calls_left{0};
const char* failing_dir = nullptr;
bool counts_memory = false;

[[gnu::constructor]] void ReadSettings() {
  failing_dir = std::getenv(kFailingDirVariable);
  counts_memory = failing_dir != nullptr && std::strcmp(failing_dir, "malloc") == 0;
  if (failing_dir != nullptr) calls_left = Setting(kFailingCallVariable);
}

void TakeNote(const char* call, const char* path) {
  static auto* const next_open = Next<int(const char*, int, ...)>("open");
  static auto* const next_write = Next<ssize_t(int, const void*, size_t)>("write");
  const char* note = std::getenv(kFailingNoteVariable);
  if (note == nullptr) return;
  const int fd = next_open(note, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  char text[PATH_MAX + 64];
  const int bytes = std::snprintf(text, sizeof(text), "%s %s\n", call, path);
  if (next_write(fd, text, static_cast<size_t>(bytes)) != bytes) std::abort();
  close(fd);
}

// Counts a call; true: it is the one that fails, and errno is set.
bool Fails(const char* call, const char* path) {
  if (calls_left == 0 || counts_memory || path == nullptr) return false;
  if (std::strncmp(path, failing_dir, std::strlen(failing_dir)) != 0) return false;
  if (--calls_left > 0) return false;
  TakeNote(call, path);
  errno = static_cast<int>(Setting(kFailingErrnoVariable));
  return true;
}

bool FailsOf(const char* call, int fd) {
  if (calls_left == 0 || counts_memory || fd < 0) return false;
  const int error = errno;
  Path path;
  const bool known = ReadLink(fd, &path);
  errno = error;
  return known && Fails(call, path);
}

// True: this allocation fails.
bool FailsMemory() {
  if (!counts_memory || calls_left == 0 || --calls_left > 0) return false;
  TakeNote("malloc", "memory");
  errno = ENOMEM;
  return true;
}

}  // namespace

// A call on a path, and one on a descriptor, that say -1 when they fail.
#define NOWCALLS_ON_PATH(result, name, path, parameters, arguments) \
  result name parameters {                                          \
    NOWCALLS_NEXT(name);                                            \
    return Fails(#name, path) ? -1 : next arguments;                \
  }
#define NOWCALLS_ON_FD(result, name, fd, parameters, arguments) \
  result name parameters {                                      \
    NOWCALLS_NEXT(name);                                        \
    return FailsOf(#name, fd) ? -1 : next arguments;            \
  }

// Parameters have the names that the C library's headers give them.
extern "C" {

int open(const char* file, int oflag, ...) {
  NOWCALLS_NEXT(open);
  NOWCALLS_MODE(oflag);
  return Fails("open", file) ? -1 : next(file, oflag, mode);
}
int open64(const char* file, int oflag, ...) {
  NOWCALLS_NEXT(open64);
  NOWCALLS_MODE(oflag);
  return Fails("open", file) ? -1 : next(file, oflag, mode);
}
int openat(int fd, const char* file, int oflag, ...) {
  NOWCALLS_NEXT(openat);
  NOWCALLS_MODE(oflag);
  const bool fails = file[0] == '/' ? Fails("openat", file) : FailsOf("openat", fd);
  return fails ? -1 : next(fd, file, oflag, mode);
}
FILE* fopen(const char* filename, const char* modes) {
  NOWCALLS_NEXT(fopen);
  return Fails("fopen", filename) ? nullptr : next(filename, modes);
}
DIR* opendir(const char* name) {
  NOWCALLS_NEXT(opendir);
  return Fails("opendir", name) ? nullptr : next(name);
}
DIR* fdopendir(int fd) {
  NOWCALLS_NEXT(fdopendir);
  return FailsOf("fdopendir", fd) ? nullptr : next(fd);
}
dirent* readdir(DIR* dirp) {
  NOWCALLS_NEXT(readdir);
  return FailsOf("readdir", dirfd(dirp)) ? nullptr : next(dirp);
}
dirent64* readdir64(DIR* dirp) {
  NOWCALLS_NEXT(readdir64);
  return FailsOf("readdir", dirfd(dirp)) ? nullptr : next(dirp);
}
size_t fread_unlocked(void* __restrict ptr, size_t size, size_t n, FILE* __restrict stream) {
  NOWCALLS_NEXT(fread_unlocked);
  constexpr int kErrorSeen = 0x20;  // glibc's _IO_ERR_SEEN.
  if (!FailsOf("fread", fileno(stream))) return next(ptr, size, n, stream);
  stream->_flags |= kErrorSeen;
  return 0;
}
void* mmap(void* addr, size_t len, int prot, int flags, int fd, off_t offset) noexcept {
  NOWCALLS_NEXT(mmap);
  return FailsOf("mmap", fd) ? MAP_FAILED : next(addr, len, prot, flags, fd, offset);
}
int fcntl(int fd, int cmd, ...) {
  NOWCALLS_NEXT(fcntl);
  va_list rest;
  va_start(rest, cmd);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  return FailsOf("fcntl", fd) ? -1 : next(fd, cmd, argument);
}
int fcntl64(int fd, int cmd, ...) {
  NOWCALLS_NEXT(fcntl64);
  va_list rest;
  va_start(rest, cmd);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  return FailsOf("fcntl", fd) ? -1 : next(fd, cmd, argument);
}

NOWCALLS_ON_PATH(int, stat, file, (const char* file, struct stat* buf) noexcept, (file, buf))
NOWCALLS_ON_PATH(int, stat64, file, (const char* file, struct stat64* buf) noexcept, (file, buf))
NOWCALLS_ON_PATH(int, lstat, file, (const char* file, struct stat* buf) noexcept, (file, buf))
NOWCALLS_ON_PATH(int, lstat64, file, (const char* file, struct stat64* buf) noexcept, (file, buf))
NOWCALLS_ON_PATH(int, statfs, file, (const char* file, struct statfs* buf) noexcept, (file, buf))
NOWCALLS_ON_PATH(int, statfs64, file, (const char* file, struct statfs64* buf) noexcept,
                 (file, buf))
NOWCALLS_ON_PATH(int, statvfs, file, (const char* file, struct statvfs* buf) noexcept, (file, buf))
NOWCALLS_ON_PATH(int, statvfs64, file, (const char* file, struct statvfs64* buf) noexcept,
                 (file, buf))
NOWCALLS_ON_PATH(int, access, name, (const char* name, int type) noexcept, (name, type))
NOWCALLS_ON_PATH(int, mkdir, path, (const char* path, mode_t mode) noexcept, (path, mode))
NOWCALLS_ON_PATH(int, unlink, name, (const char* name) noexcept, (name))
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): __new of <stdio.h>.
NOWCALLS_ON_PATH(int, rename, now, (const char* old, const char* now) noexcept, (old, now))

NOWCALLS_ON_FD(int, fstat, fd, (int fd, struct stat* buf) noexcept, (fd, buf))
NOWCALLS_ON_FD(int, fstat64, fd, (int fd, struct stat64* buf) noexcept, (fd, buf))
NOWCALLS_ON_FD(int, fstatfs, fildes, (int fildes, struct statfs* buf) noexcept, (fildes, buf))
NOWCALLS_ON_FD(int, fstatfs64, fildes, (int fildes, struct statfs64* buf) noexcept, (fildes, buf))
NOWCALLS_ON_FD(int, fstatvfs, fildes, (int fildes, struct statvfs* buf) noexcept, (fildes, buf))
NOWCALLS_ON_FD(ssize_t, read, fd, (int fd, void* buf, size_t nbytes), (fd, buf, nbytes))
NOWCALLS_ON_FD(ssize_t, pread, fd, (int fd, void* buf, size_t nbytes, off_t offset),
               (fd, buf, nbytes, offset))
NOWCALLS_ON_FD(ssize_t, pread64, fd, (int fd, void* buf, size_t nbytes, off64_t offset),
               (fd, buf, nbytes, offset))
NOWCALLS_ON_FD(ssize_t, write, fd, (int fd, const void* buf, size_t n), (fd, buf, n))
NOWCALLS_ON_FD(ssize_t, pwrite, fd, (int fd, const void* buf, size_t n, off_t offset),
               (fd, buf, n, offset))
NOWCALLS_ON_FD(ssize_t, pwrite64, fd, (int fd, const void* buf, size_t n, off64_t offset),
               (fd, buf, n, offset))
NOWCALLS_ON_FD(off_t, lseek, fd, (int fd, off_t offset, int whence) noexcept, (fd, offset, whence))
NOWCALLS_ON_FD(off64_t, lseek64, fd, (int fd, off64_t offset, int whence) noexcept,
               (fd, offset, whence))
NOWCALLS_ON_FD(int, ftruncate, fd, (int fd, off_t length) noexcept, (fd, length))
NOWCALLS_ON_FD(int, fallocate, fd, (int fd, int mode, off_t offset, off_t len),
               (fd, mode, offset, len))
NOWCALLS_ON_FD(int, fdatasync, fildes, (int fildes), (fildes))
NOWCALLS_ON_FD(int, fsync, fd, (int fd), (fd))

pid_t fork() noexcept {
  NOWCALLS_NEXT(fork);
  return Fails("fork", "fork") ? -1 : next();
}

// dlsym and getenv need no memory here, and nothing is looked up before the settings are read.
void* malloc(size_t size) noexcept {
  NOWCALLS_NEXT(malloc);
  return FailsMemory() ? nullptr : next(size);
}

}  // extern "C"
