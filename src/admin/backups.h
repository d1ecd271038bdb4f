// Backups: by a running server, of a ledger at rest, restores.
//
// Thread: one. Each returns the text to print.
#ifndef NOWCALLS_ADMIN_BACKUPS_H_
#define NOWCALLS_ADMIN_BACKUPS_H_

#include <string>

#include "admin/arguments.h"
#include "client/blocking_client.h"
#include "nowcalls/status.h"

namespace nowcalls::admin {

// kIoError: the server failed, and removed its copy.
Result<std::string> BackupLive(const Arguments& arguments, client::BlockingClient* client);
Result<std::string> BackupAtRest(const Arguments& arguments);
Result<std::string> Restore(const Arguments& arguments);

// Whether a restore would take the manifest in `data_dir`; Ok if there is none: the store notes
// half a backup.
Status CheckManifestOf(const std::string& data_dir);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_BACKUPS_H_
