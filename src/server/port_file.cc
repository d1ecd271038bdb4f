#include "server/port_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "server/config/files.h"

namespace nowcalls::server {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTextBytesMax = 6;  // "65535\n"

Status PortFileFailed(std::string_view what, const std::string& path) {
  return Status::IoError("port file: cannot " + std::string(what) + " " + path + ": " +
                         std::generic_category().message(errno));
}

// `removable`: whether to advise removing it; /dev/null is better left.
Status NotOurs(const std::string& path, std::string_view what, bool removable = true) {
  return Status::InvalidArgument(
      "port-file: " + path + " " + std::string(what) + ", so it is left as it is: " +
      (removable ? "remove it, or name another file" : "name another file"));
}

const char* KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "is a directory";
  if (S_ISLNK(mode)) return "is a symbolic link";
  if (S_ISFIFO(mode)) return "is a pipe";
  return "is a device or a socket";
}

struct OldFile {
  std::string start;    // One byte more than a port file has, if there are so many.
  bool in_use = false;  // A living server holds it.
};

Result<OldFile> ReadOld(const std::string& path) {
  // The path is the operator's and may be mistaken: follow no link, wait for no pipe's writer.
  const int fd = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return PortFileFailed("open", path);
  char text[kTextBytesMax + 1];
  const ssize_t size = pread(fd, text, sizeof(text), 0);
  const Status failed = size < 0 ? PortFileFailed("read", path) : Status::Ok();
  // Of a living server: to replace it would misdirect scripts. A file system without locks says
  // nothing; then the file counts as left behind.
  const bool in_use = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  if (size < 0) return failed;
  return OldFile{std::string(text, static_cast<size_t>(size)), in_use};
}

// A port, or the part of one that a killed server wrote, or an empty file that a script made to
// reserve the name.
bool IsPortText(std::string_view text) {
  if (text.size() > kTextBytesMax) return false;
  if (text.ends_with('\n')) text.remove_suffix(1);
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Status RemoveOld(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? Status::Ok() : PortFileFailed("look at", path);
  }
  // Only what a server may have left is removed: a regular file with a port, or nothing, in it.
  if (!S_ISREG(info.st_mode)) {
    const bool removable = S_ISDIR(info.st_mode) || S_ISLNK(info.st_mode);
    return NotOurs(path, KindOf(info.st_mode), removable);
  }
  const Result<OldFile> old = ReadOld(path);
  if (!old.ok()) return old.status();
  if (!IsPortText(old->start)) return NotOurs(path, "holds more than a port");
  // A server with the same path and another address runs: scripts would be sent to the wrong one.
  if (old->in_use) {
    return Status::InvalidArgument("port-file: " + path +
                                   " is that of another server that runs: name another file");
  }
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return Status::Ok();
  return PortFileFailed("remove", path);
}

// LOCK and logs of a ledger may be empty, and would pass for a port file. A directory with these
// names is a database's.
Status CheckDirectory(const std::string& path) {
  std::error_code ignored;
  const fs::path dir = fs::path(path).parent_path();
  if (!fs::is_regular_file(dir / "LOCK", ignored) &&
      !fs::is_regular_file(dir / "CURRENT", ignored)) {
    return {};
  }
  return Status::InvalidArgument("port-file: " + path +
                                 " would be among the files of a database: name a file elsewhere");
}

}  // namespace

Status PortFile::CheckIsNot(const std::string& path) const {
  // A client's backup under this name would stop the next server's start.
  if (path_.empty() || (!IsSameName(path, path_) && !IsSameName(path, FreshPath()))) return {};
  return Status::InvalidArgument(path +
                                 " would be in the way of the server's port file: choose "
                                 "another name");
}

Status PortFile::Prepare() {
  if (path_.empty()) return Status::Ok();
  // The ledger's lock and the address are held: a file left here is of a server that is gone, and
  // must not name it any longer.
  NOWCALLS_RETURN_IF_ERROR(CheckDirectory(path_));
  NOWCALLS_RETURN_IF_ERROR(RemoveOld(path_));
  // A trial: a path that cannot be written must fail the start now, not once peers connect.
  const Result<int> fresh = OpenFresh();
  if (!fresh.ok()) return fresh.status();
  close(*fresh);
  return unlink(FreshPath().c_str()) == 0 ? Status::Ok() : PortFileFailed("remove", FreshPath());
}

Result<int> PortFile::OpenFresh() const {
  constexpr mode_t kReadableByAll = 0644;
  const std::string fresh = FreshPath();
  NOWCALLS_RETURN_IF_ERROR(RemoveOld(fresh));
  const int fd =
      open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kReadableByAll);
  if (fd < 0) return PortFileFailed("create", fresh);
  return fd;
}

Status PortFile::Write(uint16_t port) {
  if (path_.empty()) return Status::Ok();
  // Written under another name, locked, then renamed: readers see all of it or none.
  Remove();
  NOWCALLS_RETURN_IF_ERROR(RemoveOld(path_));
  const Result<int> fresh = OpenFresh();
  if (!fresh.ok()) return fresh.status();
  fd_ = *fresh;
  text_ = std::to_string(port) + "\n";
  Status failed;
  static_cast<void>(flock(fd_, LOCK_EX | LOCK_NB));  // Nobody else knows the file yet.
  // A text this short is written whole or not at all.
  if (write(fd_, text_.data(), text_.size()) != static_cast<ssize_t>(text_.size())) {
    failed = PortFileFailed("write", FreshPath());
  } else if (std::rename(FreshPath().c_str(), path_.c_str()) != 0) {
    failed = PortFileFailed("rename a file to", path_);
  }
  // fd_ stays open: it holds the lock, and keeps the inode from being reused.
  if (failed.ok()) return failed;
  unlink(FreshPath().c_str());
  close(std::exchange(fd_, -1));
  return failed;
}

bool PortFile::IsOurs() const {
  struct stat ours {};
  struct stat named {};
  char text[kTextBytesMax + 1];
  // Same inode and same text: another server may have replaced the file, or written into it.
  const ssize_t size = pread(fd_, text, sizeof(text), 0);
  return size >= 0 && std::string_view(text, static_cast<size_t>(size)) == text_ &&
         fstat(fd_, &ours) == 0 && lstat(path_.c_str(), &named) == 0 &&
         ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

void PortFile::Remove() {
  if (fd_ < 0) return;
  if (IsOurs()) unlink(path_.c_str());
  close(std::exchange(fd_, -1));
}

}  // namespace nowcalls::server
