// What the files of a ledger directory say before, or without, opening it: whether there is a
// ledger, who holds it, which file is damaged.
//
// Thread: any.
#ifndef NOWCALLS_STORE_LEDGER_FILES_H_
#define NOWCALLS_STORE_LEDGER_FILES_H_

#include <sys/types.h>

#include <string>
#include <utility>

#include "nowcalls/status.h"

namespace nowcalls::store {

// DATA_DIR/ledger.
std::string LedgerDir(const std::string& data_dir);

// Makes `data_dir` and the ledger's directory in it, mode 0700, where absent, and makes their names
// durable. The parent of `data_dir` must exist. kInvalidArgument, kIoError.
Status MakeLedgerDir(const std::string& data_dir);

// kNotFound when `dir` holds no database: CURRENT, which is written last when one is made, is
// absent and so is all data. kCorruption when only CURRENT is absent.
Status CheckLedgerPresent(const std::string& dir);

// CURRENT's text and the size of the manifest it names: changes whenever the set of data files
// does. Empty when they cannot be read.
std::string ManifestState(const std::string& dir);

// For a corruption that RocksDB reports without a file: the file or files that it can be about.
std::string DamagedFileIn(const std::string& dir);

// Says that this process is about to open the ledger in `dir`, until the object goes away.
//
// POSIX drops all of a process's locks on a file as soon as the process closes any descriptor of
// it. FindLedgerHolder therefore must not even look at the LOCK file of a ledger that this process
// itself holds; it asks these marks first.
class LedgerMark {
 public:
  // kAlreadyExists when this process has it open already.
  static Result<LedgerMark> Take(const std::string& dir);

  LedgerMark(LedgerMark&& other) noexcept : file_(std::exchange(other.file_, {})) {}
  LedgerMark& operator=(LedgerMark&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~LedgerMark();

 private:
  using FileId = std::pair<dev_t, ino_t>;
  explicit LedgerMark(FileId file) : file_(file) {}

  FileId file_{};  // {0, 0}: moved from.
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LEDGER_FILES_H_
