// Restores a backup as the ledger of a new data directory.
//
// Thread: any but the loop. The ledger is made in NEW/restoring and becomes NEW/ledger in one step,
// when it is on disk, verified and marked; whoever is killed before leaves no ledger,
// and a directory in which no server makes one until NEW/restoring is removed.
//
// The mark is a batch of its own, a seal whose next fence is further on, as FenceAfterGap says
// (ledger/fence_line.h): beyond all that the original and every earlier copy of any of its backups
// were given out, if the wall clocks are right and none of them serves any more.
#ifndef NOWCALLS_BACKUP_RESTORE_H_
#define NOWCALLS_BACKUP_RESTORE_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "backup/manifest.h"
#include "base/clock.h"
#include "nowcalls/status.h"

namespace nowcalls::backup {

struct Restored {
  Manifest manifest;
  int64_t age_ms = 0;  // By the wall clock; negative when the backup seems to be of the future.
  uint64_t next_fence = 0;  // The first that the copy may give out.
  // False: the wall clock is wrong, or was when fences came to be beyond the line, and an earlier
  // copy may have given out later ones.
  bool is_beyond_copies = true;
};

// From the backup in `from` to `data_dir`, which does not exist or is an empty directory; `now` is
// what the machine's clocks say. kNotFound: there is no backup, or it was never finished.
// kInvalidArgument: `data_dir` is something else, or within a backup or a ledger. kCorruption:
// files are not those of the manifest, or the copy does not verify; the file is named. kIoError:
// the system refused, or there is no room. What was made is removed after a failure.
Result<Restored> Restore(const std::string& from, const std::string& data_dir,
                         const ClockSample& now, const std::atomic<bool>& stop);

}  // namespace nowcalls::backup

#endif  // NOWCALLS_BACKUP_RESTORE_H_
