// What the files of a ledger directory say before, or without, opening it: whether there is a
// ledger, which file is damaged.
//
// Thread: any.
#ifndef NOWCALLS_STORE_LEDGER_FILES_H_
#define NOWCALLS_STORE_LEDGER_FILES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nowcalls/status.h"

namespace rocksdb {
class FileSystem;
}  // namespace rocksdb

namespace nowcalls::store {

// What makes a directory that is laid out like a data directory a backup (backup/manifest.h), and
// what stands in its place until that is finished.
inline constexpr char kBackupManifestName[] = "backup.json";
inline constexpr char kBackupUnfinishedName[] = "backup.unfinished";
// In the ledger's directory of a backup, so that it is known for what it is without these two.
// Neither part of the ledger nor of the manifest, so a restored ledger does not have it.
inline constexpr char kBackupMarkName[] = "backup_mark";
// In a data directory, where a restore or a repair makes the ledger until that gets its name.
inline constexpr char kRestoringName[] = "restoring";
inline constexpr char kRepairingName[] = "repairing";

// Whether `name`, without its directory, is one by which nowcalls or RocksDB tell what the
// directory is that it is in. What a client has made must not have it.
bool TellsOfDirectory(std::string_view name);

// kInvalidArgument when `data_dir` is a backup: a ledger that is served changes, and what a restore
// does to fences would be missing.
Status CheckNoBackup(const std::string& data_dir);
// Whether it is of a backup that cannot be restored: never finished, or parted from its manifest.
bool IsBackupWithoutManifest(const std::string& data_dir);

// kInvalidArgument when a restore or a repair to `data_dir` was begun, and there is no ledger yet:
// a new one in its place would be empty.
Status CheckNoneBegun(const std::string& data_dir);

// kInvalidArgument when there is no ledger in `data_dir`, but one in a directory of it or of its
// ledger's directory: who starts there means that one, and a new one would be empty.
Status CheckNoneBelow(const std::string& data_dir);

// The three above, and CheckDataDir: whether a ledger in `data_dir`, there or new, may be served.
Status CheckMayServe(const std::string& data_dir);

// DATA_DIR/ledger.
std::string LedgerDir(const std::string& data_dir);

// kInvalidArgument when `data_dir` is itself a database, as the directory of a ledger is: one level
// too deep. The message names the directory that was probably meant.
Status CheckDataDir(const std::string& data_dir);
// Whether `dir` is a database, by its CURRENT. A directory of such a name does not tell.
bool IsDatabase(const std::string& dir);

// kInvalidArgument when `path`, which need not exist, lies within the directory of a database or
// within a backup, finished or not, at whatever depth. What RocksDB does not know it may remove,
// and so may who copies it; a backup must stay as it is.
Status CheckNotWithinBackupOrLedger(const std::string& path);

// kInvalidArgument when `path`, which need not exist, is the directory `dir` or lies within it. The
// message calls that `name`.
Status CheckOutside(const std::string& path, const std::string& dir, const std::string& name);

// The directory that `path` is in; "." when it names none.
std::string ParentOf(const std::string& path);

// kIoError, of a directory that could not be made for `error`, an errno.
Status CannotMakeDirectory(const std::string& path, int error);

// Makes `data_dir` and the ledger's directory in it, mode 0700, where absent, and makes their names
// durable; returns those that it made, the inner one first. The parent of `data_dir` must exist.
// kIoError. REQUIRES: CheckMayServe.
Result<std::vector<std::string>> MakeLedgerDir(const std::string& data_dir);

// Whether there is anything at `path`. kIoError where that cannot be told: a directory on the way
// may not be entered. What cannot be seen must not be taken for absent.
Result<bool> IsThere(const std::string& path);

// kCorruption when `path` is a named pipe, a socket or a device: to open one may take for ever. OK
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
// The same of the ledger that `files` shows; empty when there is no CURRENT. kIoError.
Result<std::string> CurrentManifest(rocksdb::FileSystem* files, const std::string& dir);

// kCorruption when the log of the ledger in `dir`, as `files` shows it, is gone: there is always
// one, if only an empty one, once CURRENT names a manifest other than the first. kIoError.
Status CheckLogPresent(rocksdb::FileSystem* files, const std::string& dir);

// The number of a manifest, by its name or path; 0: it is none.
uint64_t ManifestNumber(std::string_view path);
inline bool IsManifest(std::string_view path) { return ManifestNumber(path) != 0; }
inline bool IsTable(std::string_view path) { return path.ends_with(".sst"); }

// The names of the logs, the oldest first.
std::vector<std::string> LogNames(const std::string& dir);

// CURRENT's text and the size of the manifest it names: changes whenever the set of data files
// does. Empty when they cannot be read.
std::string ManifestState(const std::string& dir);

// For a corruption that RocksDB reports without a file: the file or files that it can be about.
std::string DamagedFileIn(const std::string& dir);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LEDGER_FILES_H_
