// LedgerReadLock: the right to read a ledger that nobody changes meanwhile. It is for ledgers that
// may be damaged, and for directories that may not be written.
//
// It is a shared lock of the file that LedgerLock locks: it refuses a server and admits other
// readers. It makes and changes nothing. FindLedgerHolder does not see that of another process.
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
  // kAlreadyExists: a server has the ledger, or this process has it already; kIoError. Without a
  // LOCK file, or on a file system without locks, nothing keeps a server away; CheckNobodyCame
  // finds it afterwards. REQUIRES: DATA_DIR/ledger is a directory.
  static Result<std::unique_ptr<LedgerReadLock>> Take(const std::string& data_dir);
  ~LedgerReadLock();
  LedgerReadLock(const LedgerReadLock&) = delete;
  LedgerReadLock& operator=(const LedgerReadLock&) = delete;

  // Ok: no server has had the ledger since Take, as far as files and locks tell. kIoError,
  // kAlreadyExists.
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
