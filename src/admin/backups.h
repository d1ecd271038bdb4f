// What nowcalls-admin does about backups: has one made by a running server, makes one of a ledger
// at rest, restores one.
//
// Thread: one. What does something returns what to print when it is done.
#ifndef NOWCALLS_ADMIN_BACKUPS_H_
#define NOWCALLS_ADMIN_BACKUPS_H_

#include <string>

#include "admin/arguments.h"
#include "client/blocking_client.h"
#include "nowcalls/status.h"

namespace nowcalls::admin {

// kIoError: the server tried and failed, and has removed what it had made.
Result<std::string> BackupLive(const Arguments& arguments, client::BlockingClient* client);
Result<std::string> BackupAtRest(const Arguments& arguments);
Result<std::string> Restore(const Arguments& arguments);

// Whether a restore would take the manifest of the backup in `data_dir`, and if not, what `restore`
// says of it. OK when there is none: the store notes what is only half a backup.
Status CheckManifestOf(const std::string& data_dir);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_BACKUPS_H_
