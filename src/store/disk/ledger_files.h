// Facts about a ledger's directory, without opening the ledger.
//
// Thread: any.
#ifndef NOWCALLS_STORE_DISK_LEDGER_FILES_H_
#define NOWCALLS_STORE_DISK_LEDGER_FILES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nowcalls/status.h"
#include "store/disk/store_error.h"

namespace rocksdb {
class FileSystem;
}  // namespace rocksdb

namespace nowcalls::store {

inline constexpr std::string_view kLedgerName = "ledger";
std::string LedgerDir(const std::string& data_dir);

// By its file CURRENT.
bool IsDatabase(const std::string& dir);

// "." for a bare name.
std::string ParentOf(const std::string& path);
// "/a/b" of "/a/b//".
std::string WithoutEndSlashes(std::string path);

// Free inodes for this user; nothing if unknown.
std::optional<uint64_t> FreeInodes(const std::string& dir);

// kIoError for `error`, an errno.
Status CannotMakeDirectory(const std::string& path, int error);

// Makes `data_dir` and its ledger directory where absent, mode 0700, names durable. Returns those
// made, the inner one first. kIoError. REQUIRES: CheckMayServe; a parent.
Result<std::vector<std::string>> MakeLedgerDir(const std::string& data_dir);

// kIoError if unknown: never taken for absent.
Result<bool> IsThere(const std::string& path);

// kCorruption: a pipe, socket or device, which opening could block on. OK if absent.
Status CheckMayBeFile(const std::string& path);
// Likewise for all of `dir`; OK without one.
Status CheckMayAllBeFiles(const std::string& dir);

// kNotFound: no database: no CURRENT, no data, no witness of a batch. kCorruption: CURRENT alone is
// missing, or an entry is no file.
Status CheckLedgerPresent(const std::string& dir);

// Name in CURRENT; empty if unreadable.
std::string CurrentManifest(const std::string& dir);
// Likewise through `files`; empty without CURRENT.
StoreError ReadCurrent(rocksdb::FileSystem* files, const std::string& dir, std::string* manifest);

// kDamaged: no log, although CURRENT names a later manifest than the first.
StoreError CheckLogPresent(rocksdb::FileSystem* files, const std::string& dir);

// Oldest first.
std::vector<std::string> LogNames(const std::string& dir);

// Changes with the set of data files. Empty if unreadable.
std::string ManifestState(const std::string& dir);

// For a corruption that RocksDB reports without a file.
std::string DamagedFileIn(const std::string& dir);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_DISK_LEDGER_FILES_H_
