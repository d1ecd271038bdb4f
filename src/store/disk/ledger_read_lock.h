// LedgerReadLock: the right to read a ledger at rest, even a damaged or read-only one. A shared
// lock of LedgerLock's file: refuses servers, admits readers. FindLedgerHolder of other processes
// does not see it.
//
// Thread: any.
#ifndef NOWCALLS_STORE_DISK_LEDGER_READ_LOCK_H_
#define NOWCALLS_STORE_DISK_LEDGER_READ_LOCK_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>

#include "nowcalls/status.h"

namespace nowcalls::store {

class LedgerReadLock {
 public:
  // kAlreadyExists: a server, or this process, has the ledger. kIoError. Without LOCK or locks a
  // server may come: see CheckNobodyCame. REQUIRES: DATA_DIR/ledger is a directory.
  static Result<std::unique_ptr<LedgerReadLock>> Take(const std::string& data_dir);
  ~LedgerReadLock();
  LedgerReadLock(const LedgerReadLock&) = delete;
  LedgerReadLock& operator=(const LedgerReadLock&) = delete;

  // By files and locks. kIoError, kAlreadyExists.
  Status CheckNobodyCame() const;

 private:
  using FileId = std::pair<dev_t, ino_t>;

  LedgerReadLock(std::string dir, FileId marked) : dir_(std::move(dir)), marked_(marked) {}
  Status LockFile();
  std::string LockPath() const { return dir_ + "/LOCK"; }

  const std::string dir_;
  const FileId marked_;
  int fd_ = -1;  // Of the LOCK file; -1: there was none.
  FileId file_{};
  bool is_locked_ = false;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_DISK_LEDGER_READ_LOCK_H_
