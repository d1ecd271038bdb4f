// Uses of a directory: a data directory to serve, a backup, or neither.
//
// Thread: any. Checks return kInvalidArgument with advice.
#ifndef NOWCALLS_STORE_DISK_DATA_DIR_H_
#define NOWCALLS_STORE_DISK_DATA_DIR_H_

#include <string>
#include <string_view>

#include "nowcalls/status.h"

namespace nowcalls::store {

// Either file makes a directory a backup: finished (backup/manifest.h), or not.
inline constexpr char kBackupManifestName[] = "backup.json";
inline constexpr char kBackupUnfinishedName[] = "backup.unfinished";
// Marks the ledger of a backup, even without the files above.
inline constexpr char kBackupMarkName[] = "backup_mark";
// Where a restore or a repair builds the ledger.
inline constexpr char kRestoringName[] = "restoring";
inline constexpr char kRepairingName[] = "repairing";

// Whether a file of this name, without directory, has a meaning. Clients must not make it.
bool TellsOfDirectory(std::string_view name);

// Refuses a backup.
Status CheckNoBackup(const std::string& data_dir);
// Whether it cannot be restored: unfinished, or without its manifest.
bool IsBackupWithoutManifest(const std::string& data_dir);

// Refuses a directory without a ledger where a restore or repair began.
Status CheckNoneBegun(const std::string& data_dir);

// Refuses a directory without a ledger but with one a directory further down.
Status CheckNoneBelow(const std::string& data_dir);

// Refuses a database's directory, such as `ledger`.
Status CheckDataDir(const std::string& data_dir);

// All four: whether a ledger in `data_dir`, there or new, may be served.
Status CheckMayServe(const std::string& data_dir);

// Refuses a `path`, which need not exist, within a database or a backup at any depth.
Status CheckNotWithinBackupOrLedger(const std::string& path);

// Likewise a `path` at or below `dir`; the message says `name`.
Status CheckOutside(const std::string& path, const std::string& dir, const std::string& name);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_DISK_DATA_DIR_H_
