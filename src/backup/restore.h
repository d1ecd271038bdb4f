// Restores a backup as the ledger of a new data directory.
//
// Thread: any but the loop. NEW/restoring becomes NEW/ledger in one step, when on disk and
// verified. A kill before leaves NEW/restoring; servers refuse to start until it is removed.
//
// Fences go on beyond earlier copies (FORMAT.md, Backups), if wall clocks are right and no copy
// serves any more.
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
  int64_t age_ms = 0;       // By the wall clock; negative: made in the future.
  uint64_t next_fence = 0;  // The copy's first fence.
  // False: a wall clock is or was wrong.
  bool is_beyond_copies = true;
};

// Restores `from` to `data_dir`, absent or empty; `now`: the machine's clocks. Removes its files
// after a failure. kNotFound: no backup, or never finished. kInvalidArgument: `data_dir` is not
// empty, or lies within a backup or ledger. kCorruption: a file, named, differs from the manifest,
// or the copy does not verify. kIoError: no room, or the system refused.
Result<Restored> Restore(const std::string& from, const std::string& data_dir,
                         const ClockSample& now, const std::atomic<bool>& stop);

}  // namespace nowcalls::backup

#endif  // NOWCALLS_BACKUP_RESTORE_H_
