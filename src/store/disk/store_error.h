// StoreError: a failure of a ledger's files: kind, text, advice. Callers decide by kind.
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

// For a ledger that is refused.
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
  // `advice` begins with its punctuation; may be empty.
  StoreError(Kind kind, std::string what, std::string advice)
      : kind_(kind), what_(std::move(what)), advice_(std::move(advice)) {}
  static StoreError Damaged(std::string what) {
    return {Kind::kDamaged, std::move(what), kDamagedAdvice};
  }

  bool ok() const { return !kind_.has_value(); }
  bool Is(Kind kind) const { return kind_ == kind; }
  Kind kind() const { return *kind_; }  // REQUIRES: !ok().
  // A sentence that names the file; empty if ok().
  const std::string& what() const { return what_; }

  // kIoError for kIo, kNoSpace, kOutOfFiles; kCorruption for kDamaged; kAlreadyExists for
  // kDisplaced; kFailedPrecondition for kRefused.
  StatusCode code() const;
  Status WithAdvice() const { return ok() ? Status() : Status(code(), what_ + advice_); }
  operator Status() const { return WithAdvice(); }  // NOLINT(google-explicit-constructor)

 private:
  std::optional<Kind> kind_;
  std::string what_;
  std::string advice_;
};

// `doing` completes "cannot ...". what() names the file, or at least `dir`.
StoreError ErrorFromRocks(const rocksdb::Status& status, std::string_view doing,
                          const std::string& dir);
// With advice.
inline Status FromRocks(const rocksdb::Status& status, std::string_view doing,
                        const std::string& dir) {
  return ErrorFromRocks(status, doing, dir).WithAdvice();
}

// `error` is an errno.
StoreError ErrorFromSystem(int error, std::string_view doing, const std::string& path);

bool IsAbsent(const rocksdb::Status& status);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_DISK_STORE_ERROR_H_
