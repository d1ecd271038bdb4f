// Restores a backup as the ledger of a new data directory.
//
// Thread: any but the loop. The ledger is made in NEW/restoring and becomes NEW/ledger in one step,
// when it is on disk, verified and marked; whoever is killed before leaves no ledger.
//
// The mark is a batch of its own, a seal whose next fence is further on: what the original granted
// after the backup, and what earlier copies from the same backup granted, has other fences and ids
// than what this copy will grant. How far depends on the age of the backup: kFencesPerSecond for
// each second since, more than any server can grant, and kFencesSkipped besides, for a wall clock
// that is some days wrong and for what machines skip when they are started anew. Fences stay
// below 2^53, the integers that JSON readers keep, for decades of age in sum.
#ifndef NOWCALLS_BACKUP_RESTORE_H_
#define NOWCALLS_BACKUP_RESTORE_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "backup/manifest.h"
#include "base/clock.h"
#include "nowcalls/status.h"

namespace nowcalls::backup {

inline constexpr uint64_t kFencesPerSecond = uint64_t{1} << 22;
inline constexpr uint64_t kFencesSkipped = uint64_t{1} << 40;

struct Restored {
  Manifest manifest;
  int64_t age_ms = 0;  // By the wall clock; negative when the backup seems to be of the future.
  uint64_t next_fence = 0;  // The first that the copy may give out.
};

// From the backup in `from` to `data_dir`, which does not exist or is an empty directory; `now` is
// what the machine's clocks say. kNotFound: there is no backup, or it was never finished.
// kInvalidArgument: `data_dir` cannot be used. kCorruption: files are not those of the manifest, or
// the copy does not verify; the file is named. What was made is removed after a failure.
Result<Restored> Restore(const std::string& from, const std::string& data_dir,
                         const ClockSample& now, const std::atomic<bool>& stop);

// How far fences go on from those of a backup of this age.
uint64_t FencesToSkip(int64_t age_ms);

}  // namespace nowcalls::backup

#endif  // NOWCALLS_BACKUP_RESTORE_H_
