// The ledger clock: milliseconds that never go back, across restarts and reboots. Follows
// CLOCK_BOOTTIME.
//
// Thread: loop.
#ifndef NOWCALLS_LEDGER_CLOCK_H_
#define NOWCALLS_LEDGER_CLOCK_H_

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/time.h"
#include "ledger/entities.h"

namespace nowcalls::ledger {

inline constexpr int64_t kRebootGapMsMax = 3'600'000;

// The time of a served ledger.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant Now() const = 0;         // Never before what it has told.
  virtual ClockSample Sample() const = 0;  // The machine's clocks, for a ClockMark.
};

class LedgerClock {
 public:
  // Says `start` at `boottime_ms`.
  LedgerClock(Instant start, int64_t boottime_ms) : now_(start), boottime_ms_(boottime_ms) {}

  // Now, for a reading of CLOCK_BOOTTIME. Stands still while a reading is behind an earlier one.
  Instant At(int64_t boottime_ms) const {
    if (boottime_ms > boottime_ms_) {
      now_ = now_ + (boottime_ms - boottime_ms_);
      boottime_ms_ = boottime_ms;
    }
    return now_;
  }

 private:
  mutable Instant now_;
  mutable int64_t boottime_ms_;
};

// What a machine has seen of the ledger's time on another one.
//
// Thread: one at a time. No clock of the other machine counts: time that was seen goes on by this
// machine's boot clock. So it may be late, by as much as the news was, and is never early. Each
// writer has a clock of its own. One that is later than that of the writer before has promised by
// it, so only the last one counts.
class ObservedTime {
 public:
  // The time of the writer of `term` was `ledger_ms` before this machine's boot clock said
  // `boottime_ms`.
  void Saw(uint64_t term, int64_t ledger_ms, int64_t boottime_ms) {
    const int64_t ahead_ms = ledger_ms - boottime_ms;
    if (!ahead_ms_ || term != term_ || ahead_ms > *ahead_ms_) ahead_ms_ = ahead_ms;
    term_ = term;
  }
  // nullopt: nothing was seen.
  std::optional<Instant> At(int64_t boottime_ms) const {
    if (!ahead_ms_) return std::nullopt;
    return Instant{boottime_ms + *ahead_ms_};
  }

 private:
  std::optional<int64_t> ahead_ms_;
  uint64_t term_ = 0;
};

struct RecoveredTime {
  Instant now;
  bool same_boot = false;
  bool observed = false;    // Of another boot, and seen by ObservedTime.
  int64_t wall_gap_ms = 0;  // Wall difference since the mark; meaningful on another boot.
  bool clamped = false;     // wall_gap_ms was outside [0, kRebootGapMsMax].
};

// Ledger time at `sample` (FORMAT.md, Time). `floor`: time of the last seal.
RecoveredTime RecoverTime(const ClockMark& mark, Instant floor, const ClockSample& sample,
                          const ObservedTime& observed = {});

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_CLOCK_H_
