// LedgerLock: the right of one process to be the server of a ledger, and who has it.
//
// Thread: any. It is RocksDB's own lock (LOCK in the ledger's directory), taken before the ledger
// is opened or formatted, so that a server can first put in order what belongs to it, its port file
// for one. fcntl locks belong to a process, which loses them when it closes any descriptor of the
// file; so RocksDB does not lock it itself (LedgerFileSystem), or the lock would end with the
// database, before the last files are written or removed.
#ifndef NOWCALLS_STORE_LEDGER_LOCK_H_
#define NOWCALLS_STORE_LEDGER_LOCK_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nowcalls/status.h"

namespace nowcalls::store {

// Who holds a ledger's lock. pid is 0 when nobody does, and -1 when it is held by a process that
// cannot be named from here (another pid namespace).
struct LedgerHolder {
  int64_t pid = 0;
};
// Changes nothing and takes no lock; also right for a ledger that this process itself has open.
Result<LedgerHolder> FindLedgerHolder(const std::string& data_dir);

class LedgerLock {
 public:
  // Makes `data_dir` and the ledger's directory where absent. kAlreadyExists: another process has
  // it, with its pid, or this one has it already; kInvalidArgument: `data_dir` is a database
  // itself, or a backup, or a restore to it did not end, or the ledger is one directory further
  // down, or there is none and `data_dir` lies within a backup or among the files of a database;
  // kIoError.
  static Result<std::unique_ptr<LedgerLock>> Take(const std::string& data_dir);

  // Directories that Take made go away again if no ledger was made in them.
  ~LedgerLock();
  LedgerLock(const LedgerLock&) = delete;
  LedgerLock& operator=(const LedgerLock&) = delete;

  const std::string& ledger_dir() const { return dir_; }

  // Ok while DATA_DIR/ledger is the directory that was locked: one look at a name, some
  // microseconds. kAlreadyExists when it was moved, removed or replaced; then another server may
  // have what is there now.
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

#endif  // NOWCALLS_STORE_LEDGER_LOCK_H_
