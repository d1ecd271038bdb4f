// LedgerLock: the right of one process to be the server of a ledger, and who has it.
//
// It is RocksDB's own lock, LOCK in the ledger's directory. It is taken before the ledger is opened
// or made, so that a server can first put in order what belongs to it, such as its port file. A
// process loses its fcntl locks on a file when it closes any descriptor of the file. So RocksDB
// does not lock LOCK itself (LedgerFileSystem): the lock would end with the database, before the
// last files are written or removed.
//
// Thread: any.
#ifndef NOWCALLS_STORE_DISK_LEDGER_LOCK_H_
#define NOWCALLS_STORE_DISK_LEDGER_LOCK_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nowcalls/status.h"

namespace nowcalls::store {

// Who holds a ledger's lock.
struct LedgerHolder {
  int64_t pid = 0;  // 0: nobody. -1: a process that has no name here (another pid namespace).
};
// Changes nothing and takes no lock. Finds this process, too.
Result<LedgerHolder> FindLedgerHolder(const std::string& data_dir);

class LedgerLock {
 public:
  // Makes `data_dir` and the ledger's directory where absent. Errors:
  //   kAlreadyExists: another process has the lock, with its pid, or this process has it already.
  //   kInvalidArgument: CheckMayServe refuses `data_dir`; or there is no ledger, and `data_dir`
  //   lies
  //     within a backup or among the files of a database (data_dir.h).
  //   kIoError.
  static Result<std::unique_ptr<LedgerLock>> Take(const std::string& data_dir);

  // Removes the directories that Take made, if no ledger was made in them.
  ~LedgerLock();
  LedgerLock(const LedgerLock&) = delete;
  LedgerLock& operator=(const LedgerLock&) = delete;

  const std::string& ledger_dir() const { return dir_; }

  // Ok while DATA_DIR/ledger is the directory that was locked. It takes some microseconds.
  // kAlreadyExists when that was moved, removed or replaced: another server may have what is there
  // now.
  Status CheckStillOurs() const;

 private:
  using FileId = std::pair<dev_t, ino_t>;

  LedgerLock(std::string dir, std::vector<std::string> made)
      : dir_(std::move(dir)), made_(std::move(made)) {}
  Status MarkAsOurs();
  Status LockFile();
  std::string LockPath() const { return dir_ + "/LOCK"; }

  const std::string dir_;
  const std::vector<std::string> made_;
  FileId marked_{};  // {0, 0}: not yet.
  int fd_ = -1;
  FileId locked_{};  // The LOCK file; {0, 0}: not yet.
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_DISK_LEDGER_LOCK_H_
