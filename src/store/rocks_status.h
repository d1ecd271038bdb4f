// The border where RocksDB's errors become a Status.
#ifndef NOWCALLS_STORE_ROCKS_STATUS_H_
#define NOWCALLS_STORE_ROCKS_STATUS_H_

#include <rocksdb/status.h>

#include <string>
#include <string_view>

#include "nowcalls/status.h"

namespace nowcalls::store {

// The end of a message about a ledger that is refused.
inline constexpr char kDamagedAdvice[] =
    "; the ledger is damaged: restore it from a backup, or salvage what is left of it with "
    "`nowcalls-admin repair`";

// `doing` completes "cannot ...": "open the ledger". The message names the file, or at least the
// directory `dir`, and what to do: kCorruption for bytes that are not what was written and for
// files that are gone, kFailedPrecondition for calls the ledger is not open for, kAlreadyExists
// when another has taken its place, else kIoError.
Status FromRocks(const rocksdb::Status& status, std::string_view doing, const std::string& dir);

// Whether there is no such file, as some file systems tell and as others do.
bool IsAbsent(const rocksdb::Status& status);

// Whether it tells that this process, or the system, may open no more files. Nothing is wrong with
// those that could not be opened.
bool IsOutOfFiles(std::string_view message);

// A message of this module without what to do about it, for whoever is doing that.
std::string WithoutAdvice(const std::string& message);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_STATUS_H_
