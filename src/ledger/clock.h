// The ledger clock: milliseconds that never go back, across restarts and reboots.
//
// Thread: loop. While running it follows CLOCK_BOOTTIME. The last mark is stored with the boot id
// and the wall time; after a restart on the same boot the time that passed is the difference of
// the boot clocks, on another boot it is the difference of the wall clocks clamped to
// [0, kRebootGapMsMax], since a wall clock may have been set by anyone.
#ifndef NOWCALLS_LEDGER_CLOCK_H_
#define NOWCALLS_LEDGER_CLOCK_H_

#include <cstdint>

#include "base/clock.h"
#include "base/time.h"
#include "ledger/entities.h"

namespace nowcalls::ledger {

inline constexpr int64_t kRebootGapMsMax = 3'600'000;

class LedgerClock {
 public:
  // A clock that says `start` when the boot clock says `boottime_ms`.
  LedgerClock(Instant start, int64_t boottime_ms) : start_(start), boottime_ms_(boottime_ms) {}

  // Now, for a reading of CLOCK_BOOTTIME. Never before `start`.
  Instant At(int64_t boottime_ms) const {
    return boottime_ms <= boottime_ms_ ? start_ : start_ + (boottime_ms - boottime_ms_);
  }

 private:
  Instant start_;
  int64_t boottime_ms_;
};

struct RecoveredTime {
  Instant now;
  bool same_boot = false;
  int64_t wall_gap_ms = 0;  // Wall difference since the mark; meaningful on another boot.
  bool clamped = false;     // wall_gap_ms was outside [0, kRebootGapMsMax].
};

// The ledger time at `sample`, given the stored mark and the latest ledger time found anywhere in
// the ledger (`floor`), which may be up to a second past the mark.
RecoveredTime RecoverTime(const ClockMark& mark, Instant floor, const ClockSample& sample);

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_CLOCK_H_
