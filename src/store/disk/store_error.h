// StoreError: what is wrong with a ledger's files, what kind of failure it is, and what to do.
//
// RocksDB and the system report failures as text. This is the border: the text is read here once
// and becomes a kind. Nothing above decides by text, and nothing cuts advice out of a message: who
// follows the advice already prints what() alone.
//
// Thread: any.
#ifndef NOWCALLS_STORE_DISK_STORE_ERROR_H_
#define NOWCALLS_STORE_DISK_STORE_ERROR_H_

#include <rocksdb/status.h>

#include <optional>
#include <string>
#include <string_view>

#include "nowcalls/status.h"

namespace nowcalls::store {

// The advice about a ledger that is refused.
inline constexpr char kDamagedAdvice[] =
    "; the ledger is damaged: restore it from a backup, or salvage what is left of it with "
    "`nowcalls-admin repair`";

class [[nodiscard]] StoreError {
 public:
  enum class Kind {
    kIo,          // The system refuses to read or write.
    kNoSpace,     // The file system is full.
    kOutOfFiles,  // This process, or the system, may open no more files. The files are sound.
    kDamaged,     // Bytes are not what was written, or a file is gone.
    kDisplaced,   // Another directory has taken the place of the ledger's.
    kRefused,     // The ledger is not open for this call.
  };

  StoreError() = default;  // All is well.
  // `advice` says what to do, with the punctuation before it; it may be empty.
  StoreError(Kind kind, std::string what, std::string advice)
      : kind_(kind), what_(std::move(what)), advice_(std::move(advice)) {}
  static StoreError Damaged(std::string what) {
    return {Kind::kDamaged, std::move(what), kDamagedAdvice};
  }

  bool ok() const { return !kind_.has_value(); }
  bool Is(Kind kind) const { return kind_ == kind; }
  Kind kind() const { return *kind_; }  // REQUIRES: !ok().
  // What is wrong, as a sentence that names the file. Empty if ok().
  const std::string& what() const { return what_; }

  // kIoError for kIo, kNoSpace and kOutOfFiles, kCorruption for kDamaged, kAlreadyExists for
  // kDisplaced, kFailedPrecondition for kRefused.
  StatusCode code() const;
  // For people who have not heard the advice yet.
  Status WithAdvice() const { return ok() ? Status() : Status(code(), what_ + advice_); }
  operator Status() const { return WithAdvice(); }  // NOLINT(google-explicit-constructor)

 private:
  std::optional<Kind> kind_;
  std::string what_;
  std::string advice_;
};

// Converts RocksDB's failure. `doing` completes "cannot ...": "open the ledger". what() names the
// file, or at least the directory `dir`.
StoreError ErrorFromRocks(const rocksdb::Status& status, std::string_view doing,
                          const std::string& dir);
// The same for those who only report it.
inline Status FromRocks(const rocksdb::Status& status, std::string_view doing,
                        const std::string& dir) {
  return ErrorFromRocks(status, doing, dir).WithAdvice();
}

// Converts a failed call of the system: `error` is its errno.
StoreError ErrorFromSystem(int error, std::string_view doing, const std::string& path);

// Whether there is no such file. File systems report that in two ways.
bool IsAbsent(const rocksdb::Status& status);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_DISK_STORE_ERROR_H_
