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

// The time of a ledger that is served, for all who act on it.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant Now() const = 0;         // Never before what it has told.
  virtual ClockSample Sample() const = 0;  // The machine's clocks, for a ClockMark.
};

class LedgerClock {
 public:
  // A clock that says `start` when the boot clock says `boottime_ms`.
  LedgerClock(Instant start, int64_t boottime_ms) : now_(start), boottime_ms_(boottime_ms) {}

  // Now, for a reading of CLOCK_BOOTTIME. Never before `start`, nor before what it has told: while
  // the reading is behind an earlier one, time stands still.
  Instant At(int64_t boottime_ms) const {
    if (boottime_ms > boottime_ms_) {
      now_ = now_ + (boottime_ms - boottime_ms_);
      boottime_ms_ = boottime_ms;
    }
    return now_;
  }

 private:
  // Of the largest reading. To look at a clock changes nothing that its owner sees.
  mutable Instant now_;
  mutable int64_t boottime_ms_;
};

struct RecoveredTime {
  Instant now;
  bool same_boot = false;
  int64_t wall_gap_ms = 0;  // Wall difference since the mark; meaningful on another boot.
  bool clamped = false;     // wall_gap_ms was outside [0, kRebootGapMsMax].
};

// The ledger time at `sample`, given the stored mark and the time of the last seal (`floor`), which
// may be a minute past the mark.
RecoveredTime RecoverTime(const ClockMark& mark, Instant floor, const ClockSample& sample);

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_CLOCK_H_
