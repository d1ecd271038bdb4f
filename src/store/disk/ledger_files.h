// What the files of a ledger's directory say before, or without, opening the ledger: whether there
// is one, and which file is damaged.
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

// The name of a ledger's directory in its data directory.
inline constexpr std::string_view kLedgerName = "ledger";
// DATA_DIR/ledger.
std::string LedgerDir(const std::string& data_dir);

// Whether `dir` is a database, by its file CURRENT.
bool IsDatabase(const std::string& dir);

// The directory that `path` is in; "." when it names none.
std::string ParentOf(const std::string& path);
// "/a/b" of "/a/b//".
std::string WithoutEndSlashes(std::string path);

// Inodes that are free for this user; nothing if the file system has no such number.
std::optional<uint64_t> FreeInodes(const std::string& dir);

// kIoError, of a directory that could not be made for `error`, an errno.
Status CannotMakeDirectory(const std::string& path, int error);

// Makes `data_dir` and the ledger's directory in it, mode 0700, where absent, and makes their names
// durable. Returns the directories that it made, the inner one first. The parent of `data_dir` must
// exist. kIoError. REQUIRES: CheckMayServe.
Result<std::vector<std::string>> MakeLedgerDir(const std::string& data_dir);

// Whether there is anything at `path`. kIoError where that cannot be told: a directory on the way
// may not be entered. What cannot be seen must not be taken for absent.
Result<bool> IsThere(const std::string& path);

// kCorruption when `path` is a named pipe, a socket or a device: opening one may take for ever. OK
// when there is nothing.
Status CheckMayBeFile(const std::string& path);
// The same of everything in `dir`. OK when there is no directory.
Status CheckMayAllBeFiles(const std::string& dir);

// kNotFound when `dir` holds no database: CURRENT, which is written last when one is made, is
// absent and so is all data, and no witness tells of a batch. kCorruption when CURRENT alone is
// absent, or something in `dir` is no file.
Status CheckLedgerPresent(const std::string& dir);

// The name of the manifest that CURRENT names; empty when that cannot be read.
std::string CurrentManifest(const std::string& dir);
// The same of the ledger that `files` shows; empty when there is no CURRENT.
StoreError ReadCurrent(rocksdb::FileSystem* files, const std::string& dir, std::string* manifest);

// kDamaged when the ledger in `dir`, as `files` shows it, has lost its log. There is always one, if
// only an empty one, once CURRENT names a manifest other than the first.
StoreError CheckLogPresent(rocksdb::FileSystem* files, const std::string& dir);

// The names of the logs, the oldest first.
std::vector<std::string> LogNames(const std::string& dir);

// CURRENT's text and the size of the manifest it names: changes whenever the set of data files
// does. Empty when they cannot be read.
std::string ManifestState(const std::string& dir);

// For a corruption that RocksDB reports without a file: the file or files that it can be about.
std::string DamagedFileIn(const std::string& dir);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_DISK_LEDGER_FILES_H_
