// A backup: a verified copy of a ledger in DIR/ledger, with a manifest.
//
// Thread: any but the loop; blocks. A failure removes DIR; a kill leaves it without a manifest,
// which Restore refuses.
#ifndef NOWCALLS_BACKUP_BACKUP_H_
#define NOWCALLS_BACKUP_BACKUP_H_

#include <atomic>
#include <functional>
#include <string>

#include "backup/manifest.h"
#include "nowcalls/status.h"
#include "store/rocks/copy_source.h"

namespace nowcalls::backup {

// VerifyCopy, or VerifyInProcess for callers that must survive. REQUIRES: no server has `data_dir`
// open.
using CopyVerifier = std::function<Result<VerifySummary>(const std::string& data_dir,
                                                         const std::atomic<bool>& stop)>;

// Copies `source`, the ledger in `data_dir`. Calls `begun` once `to` was made. kInvalidArgument:
// `to` is not absolute, exists, or cannot be made; it lies in a ledger, a backup or the data
// directory, or has a name of store::TellsOfDirectory. kCorruption: the copy does not verify.
// kUnavailable: `stop` was set. kIoError: no room, or the disk failed.
Result<Manifest> MakeBackup(const store::CopySource& source, const std::string& data_dir,
                            const std::string& to, const std::string& made_by,
                            const CopyVerifier& verify, const std::atomic<bool>& stop,
                            const std::function<void()>& begun = {});

// Of a ledger at rest, locked meanwhile. kAlreadyExists: a server has it open.
Result<Manifest> MakeBackupAtRest(const std::string& data_dir, const std::string& to,
                                  const std::string& made_by, const CopyVerifier& verify,
                                  const std::atomic<bool>& stop);

// In this process, which a failed assertion of RocksDB ends with 65. kCorruption: the first problem
// and their number.
Result<VerifySummary> VerifyCopy(const std::string& data_dir, const std::atomic<bool>& stop);

}  // namespace nowcalls::backup

#endif  // NOWCALLS_BACKUP_BACKUP_H_
