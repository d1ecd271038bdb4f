// What a directory may be used for: a data directory to serve, a backup, or neither.
//
// Thread: any. Each check is kInvalidArgument with what to do instead.
#ifndef NOWCALLS_STORE_DISK_DATA_DIR_H_
#define NOWCALLS_STORE_DISK_DATA_DIR_H_

#include <string>
#include <string_view>

#include "nowcalls/status.h"

namespace nowcalls::store {

// A directory laid out like a data directory is a backup if it has this file (backup/manifest.h).
// The second stands in its place until the backup is finished.
inline constexpr char kBackupManifestName[] = "backup.json";
inline constexpr char kBackupUnfinishedName[] = "backup.unfinished";
// In the ledger's directory of a backup, which is known by it without the two above. It belongs
// neither to the ledger nor to the manifest, so a restored ledger does not have it.
inline constexpr char kBackupMarkName[] = "backup_mark";
// In a data directory, where a restore or a repair makes the ledger until that gets its name.
inline constexpr char kRestoringName[] = "restoring";
inline constexpr char kRepairingName[] = "repairing";

// Whether nowcalls or RocksDB take a directory for something because it has a file of this name,
// given without its directory. What a client has made must not have such a name.
bool TellsOfDirectory(std::string_view name);

// Refuses a backup: a ledger that is served changes, and what a restore does to fences would be
// missing.
Status CheckNoBackup(const std::string& data_dir);
// Whether it is of a backup that cannot be restored: never finished, or parted from its manifest.
bool IsBackupWithoutManifest(const std::string& data_dir);

// Refuses a directory where a restore or a repair was begun and there is no ledger yet: a new
// ledger in its place would be empty.
Status CheckNoneBegun(const std::string& data_dir);

// Refuses a directory without a ledger if one lies a directory further down, in it or in its
// ledger's directory: that ledger is meant, and a new one would be empty.
Status CheckNoneBelow(const std::string& data_dir);

// Refuses a directory that is itself a database, as the directory of a ledger is: one level too
// deep. The message names the directory that was probably meant.
Status CheckDataDir(const std::string& data_dir);

// The four above: whether a ledger in `data_dir`, there or new, may be served.
Status CheckMayServe(const std::string& data_dir);

// Refuses a `path`, which need not exist, that lies within the directory of a database or within a
// backup, finished or not, at whatever depth. RocksDB may remove files that it does not know, and
// a backup must stay as it is.
Status CheckNotWithinBackupOrLedger(const std::string& path);

// Refuses a `path`, which need not exist, that is the directory `dir` or lies within it. The
// message calls that `name`.
Status CheckOutside(const std::string& path, const std::string& dir, const std::string& name);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_DISK_DATA_DIR_H_
