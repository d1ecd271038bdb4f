#include "store/disk/ledger_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <mutex>
#include <set>
#include <system_error>

#include "base/os_error.h"
#include "store/disk/data_dir.h"
#include "store/disk/ledger_files.h"
#include "store/disk/ledger_read_lock.h"

namespace nowcalls::store {
namespace {

// Ledgers whose lock this process has, or is about to take.
//
// POSIX drops all locks of a process on a file when it closes any descriptor of the file. So
// RocksDB must not lock LOCK itself: the lock would end with the database, before the last files
// are written or removed. And no code may open the LOCK file of a ledger in this set.
struct OurLedgers {
  std::mutex mutex;
  std::set<std::pair<dev_t, ino_t>> dirs;
};

// Never destroyed: stores may be closed while the process exits.
OurLedgers& LedgersOfThisProcess() {
  static OurLedgers& ledgers = *new OurLedgers;
  return ledgers;
}

struct flock WholeFile(int type) {
  struct flock whole {};
  whole.l_type = static_cast<decltype(whole.l_type)>(type);
  whole.l_whence = SEEK_SET;
  return whole;
}

// Holder of a lock that prevents one of `type`. `*is_reader`: a shared lock, which prevents servers
// only.
Result<LedgerHolder> HolderOf(int fd, int type, const std::string& path,
                              bool* is_reader = nullptr) {
  struct flock probe = WholeFile(type);
  if (fcntl(fd, F_GETLK, &probe) != 0) return OsError("probe the lock", path);
  if (is_reader != nullptr) *is_reader = probe.l_type == F_RDLCK;
  if (probe.l_type == F_UNLCK) return LedgerHolder{};
  // No positive pid: the holder lives in another pid namespace.
  return LedgerHolder{probe.l_pid > 0 ? probe.l_pid : -1};
}

std::string Describe(const LedgerHolder& holder) {
  if (holder.pid > 0) return "process " + std::to_string(holder.pid);
  if (holder.pid == 0) return "a process that is just ending";
  return "a process outside this container (its pid is not visible here)";
}

Status HeldByAnother(int fd, int type, const std::string& dir) {
  bool is_reader = false;
  const Result<LedgerHolder> holder = HolderOf(fd, type, dir + "/LOCK", &is_reader);
  if (!holder.ok()) return holder.status();
  if (is_reader) {
    return Status::AlreadyExists("the ledger in " + dir + " is being salvaged by " +
                                 Describe(*holder) +
                                 ", and must not change meanwhile: wait until that has ended, or "
                                 "choose another data directory");
  }
  return Status::AlreadyExists("the ledger in " + dir + " is open in " + Describe(*holder) +
                               ": stop it first, or choose another data directory");
}

using FileId = std::pair<dev_t, ino_t>;

Result<FileId> Mark(const std::string& dir) {
  struct stat info {};
  if (stat(dir.c_str(), &info) != 0) return OsError("look at", dir);
  const FileId id(info.st_dev, info.st_ino);
  OurLedgers& ledgers = LedgersOfThisProcess();
  const std::lock_guard guard(ledgers.mutex);
  if (ledgers.dirs.insert(id).second) return id;
  return Status::AlreadyExists("this process (pid " + std::to_string(getpid()) +
                               ") already has the ledger in " + dir + " open");
}

void Unmark(const FileId& marked) {
  OurLedgers& ledgers = LedgersOfThisProcess();
  const std::lock_guard guard(ledgers.mutex);
  ledgers.dirs.erase(marked);
}

}  // namespace

Result<std::unique_ptr<LedgerLock>> LedgerLock::Take(const std::string& data_dir) {
  NOWCALLS_RETURN_IF_ERROR(CheckMayServe(data_dir));
  // A ledger already in such a place must be served, or refused for its own damage.
  if (CheckLedgerPresent(LedgerDir(data_dir)).code() == StatusCode::kNotFound) {
    NOWCALLS_RETURN_IF_ERROR(CheckNotWithinBackupOrLedger(data_dir));
  }
  Result<std::vector<std::string>> made = MakeLedgerDir(data_dir);
  if (!made.ok()) return made.status();
  std::unique_ptr<LedgerLock> lock(new LedgerLock(LedgerDir(data_dir), *std::move(made)));
  // Our own set first: opening LOCK beside an open ledger of ours would drop its lock.
  NOWCALLS_RETURN_IF_ERROR(lock->MarkAsOurs());
  NOWCALLS_RETURN_IF_ERROR(lock->LockFile());
  return lock;
}

Status LedgerLock::MarkAsOurs() {
  const Result<FileId> marked = Mark(dir_);
  if (!marked.ok()) return marked.status();
  marked_ = *marked;
  return {};
}

Status LedgerLock::LockFile() {
  constexpr mode_t kMode = 0644;  // RocksDB's.
  for (;;) {
    fd_ = open(LockPath().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMode);
    if (fd_ < 0) return OsError("open", LockPath());
    struct flock whole = WholeFile(F_WRLCK);
    if (fcntl(fd_, F_SETLK, &whole) != 0) {
      const bool held = errno == EACCES || errno == EAGAIN;
      return held ? HeldByAnother(fd_, F_WRLCK, dir_) : OsError("lock", LockPath());
    }
    struct stat opened {};
    if (fstat(fd_, &opened) != 0) return OsError("look at", LockPath());
    locked_ = {opened.st_dev, opened.st_ino};
    if (CheckStillOurs().ok()) return {};
    // The holder has removed the directory, since it made no ledger. Try again.
    locked_ = {};
    close(std::exchange(fd_, -1));
  }
}

Status LedgerLock::CheckStillOurs() const {
  struct stat named {};
  // The file is open, so no other file can get its inode. A moved directory changes what the path
  // leads to.
  if (stat(LockPath().c_str(), &named) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) return OsError("look at", LockPath());
  } else if (FileId(named.st_dev, named.st_ino) == locked_) {
    return {};
  }
  return Status::AlreadyExists(
      "the ledger in " + dir_ +
      " is no longer the one that this server opened: the directory or its LOCK file was moved, "
      "removed or replaced while the server was running. Nothing more is written there. Bring back "
      "what is to be served before the next start, which would begin an empty ledger where there "
      "is none, and stop a server before its files are moved");
}

LedgerLock::~LedgerLock() {
  // Only while the place is ours, and before the lock goes: a server that comes next makes its own.
  std::error_code error;
  const bool locked = locked_ != FileId{} && CheckStillOurs().ok();
  if (locked && !made_.empty() && !std::filesystem::exists(dir_ + "/CURRENT", error)) {
    unlink(LockPath().c_str());
    for (const std::string& dir : made_) rmdir(dir.c_str());
  }
  if (fd_ >= 0) close(fd_);
  if (marked_ != FileId{}) Unmark(marked_);
}

Result<std::unique_ptr<LedgerReadLock>> LedgerReadLock::Take(const std::string& data_dir) {
  const std::string dir = LedgerDir(data_dir);
  const Result<FileId> marked = Mark(dir);
  if (!marked.ok()) return marked.status();
  std::unique_ptr<LedgerReadLock> lock(new LedgerReadLock(dir, *marked));
  NOWCALLS_RETURN_IF_ERROR(lock->LockFile());
  return lock;
}

Status LedgerReadLock::LockFile() {
  fd_ = open(LockPath().c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) return errno == ENOENT ? Status::Ok() : OsError("open", LockPath());
  struct stat opened {};
  if (fstat(fd_, &opened) != 0) return OsError("look at", LockPath());
  file_ = {opened.st_dev, opened.st_ino};
  struct flock whole = WholeFile(F_RDLCK);
  is_locked_ = fcntl(fd_, F_SETLK, &whole) == 0;
  if (is_locked_) return {};
  if (errno == EACCES || errno == EAGAIN) return HeldByAnother(fd_, F_RDLCK, dir_);
  // On a file system without locks no server can have one; F_GETLK may still know a holder.
  const Result<LedgerHolder> holder = HolderOf(fd_, F_RDLCK, LockPath());
  if (!holder.ok()) return holder.status();
  return holder->pid == 0 ? Status::Ok() : HeldByAnother(fd_, F_RDLCK, dir_);
}

Status LedgerReadLock::CheckNobodyCame() const {
  struct stat named {};
  if (stat(LockPath().c_str(), &named) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) return OsError("look at", LockPath());
    named = {};
  }
  // A server that came and went has made LOCK anew, or the directory was replaced.
  if (FileId(named.st_dev, named.st_ino) != file_) {
    return Status::IoError("a server was started on the ledger in " + dir_ +
                           ", or its LOCK file was moved, while it was read: stop the server, and "
                           "begin again");
  }
  if (file_ == FileId{} || is_locked_) return {};
  const Result<LedgerHolder> holder = HolderOf(fd_, F_RDLCK, LockPath());
  if (!holder.ok()) return holder.status();
  return holder->pid == 0 ? Status::Ok() : HeldByAnother(fd_, F_RDLCK, dir_);
}

LedgerReadLock::~LedgerReadLock() {
  if (fd_ >= 0) close(fd_);
  Unmark(marked_);
}

Result<LedgerHolder> FindLedgerHolder(const std::string& data_dir) {
  const std::string dir = LedgerDir(data_dir);
  struct stat info {};
  if (stat(dir.c_str(), &info) != 0) {
    if (errno == ENOENT) return LedgerHolder{};
    return OsError("look at", dir);
  }
  OurLedgers& ledgers = LedgersOfThisProcess();
  // Held to the end: no other thread may take the lock between probe and close.
  const std::lock_guard guard(ledgers.mutex);
  if (ledgers.dirs.contains({info.st_dev, info.st_ino})) return LedgerHolder{getpid()};
  const std::string path = dir + "/LOCK";
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT) return LedgerHolder{};
    return OsError("open", path);
  }
  Result<LedgerHolder> holder = HolderOf(fd, F_RDLCK, path);
  close(fd);
  return holder;
}

}  // namespace nowcalls::store
