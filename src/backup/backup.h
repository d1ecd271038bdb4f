// Makes a backup: a copy of a ledger that was verified, with a manifest.
//
// Thread: any but the loop; takes as long as reading and copying the ledger does. DIR/ledger is the
// copy. Whoever is killed in between leaves DIR without its manifest, which Restore refuses; who
// fails removes it.
#ifndef NOWCALLS_BACKUP_BACKUP_H_
#define NOWCALLS_BACKUP_BACKUP_H_

#include <atomic>
#include <functional>
#include <string>

#include "backup/manifest.h"
#include "nowcalls/status.h"
#include "store/rocks/copy_source.h"

namespace nowcalls::backup {

// Verifies the ledger in `data_dir`, which no server has open: VerifyCopy, or VerifyInProcess
// (verify_process.h) for whom it must not end.
using CopyVerifier = std::function<Result<VerifySummary>(const std::string& data_dir,
                                                         const std::atomic<bool>& stop)>;

// Of the ledger `source`, which lies in `data_dir`; `made_by` is for the manifest.
// kInvalidArgument: `to` cannot be made: not absolute, there already, in a directory that is absent
// or may not be written to, within the ledger, in the data directory itself, in another ledger or
// in a backup, or of a name that tells what a directory is (store::TellsOfDirectory). kCorruption:
// the copy does not verify. kUnavailable: `stop` was set. kIoError: no room, or another failure of
// the disk. `begun`, if any, is called once `to` was made.
Result<Manifest> MakeBackup(const store::CopySource& source, const std::string& data_dir,
                            const std::string& to, const std::string& made_by,
                            const CopyVerifier& verify, const std::atomic<bool>& stop,
                            const std::function<void()>& begun = {});

// Of a ledger that no server has open; it is locked meanwhile. kAlreadyExists when one has, with
// its process id.
Result<Manifest> MakeBackupAtRest(const std::string& data_dir, const std::string& to,
                                  const std::string& made_by, const CopyVerifier& verify,
                                  const std::atomic<bool>& stop);

// In this process, which ends with 65 where damage fails an assertion of RocksDB. kCorruption with
// the first problem and how many there are.
Result<VerifySummary> VerifyCopy(const std::string& data_dir, const std::atomic<bool>& stop);

}  // namespace nowcalls::backup

#endif  // NOWCALLS_BACKUP_BACKUP_H_
