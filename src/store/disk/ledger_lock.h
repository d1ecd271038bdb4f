// LedgerLock: the right of one process to serve a ledger, an fcntl lock of LOCK. Taken before the
// ledger is opened or made; held until its last file is written.
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

struct LedgerHolder {
  int64_t pid = 0;  // 0: nobody. -1: a process that has no name here (another pid namespace).
};
// Takes no lock; finds this process, too.
Result<LedgerHolder> FindLedgerHolder(const std::string& data_dir);

class LedgerLock {
 public:
  // Makes both directories where absent. kAlreadyExists: another process, named, or this one has
  // the lock. kInvalidArgument: CheckMayServe refuses; or no ledger is there and `data_dir` lies
  // within a backup or a database. kIoError.
  static Result<std::unique_ptr<LedgerLock>> Take(const std::string& data_dir);

  // Removes directories made by Take, if no ledger came into them.
  ~LedgerLock();
  LedgerLock(const LedgerLock&) = delete;
  LedgerLock& operator=(const LedgerLock&) = delete;

  const std::string& ledger_dir() const { return dir_; }

  // kAlreadyExists: DATA_DIR/ledger is no longer the locked directory. Another server may have it.
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
