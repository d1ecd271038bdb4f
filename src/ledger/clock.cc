#include "ledger/clock.h"

#include <algorithm>

namespace nowcalls::ledger {

RecoveredTime RecoverTime(const ClockMark& mark, Instant floor, const ClockSample& sample,
                          const ObservedTime& observed) {
  RecoveredTime recovered;
  recovered.same_boot = mark.machine.boot_id == sample.boot_id;
  recovered.wall_gap_ms = sample.wall_ms - mark.machine.wall_ms;
  const std::optional<Instant> seen = observed.At(sample.boottime_ms);
  if (!recovered.same_boot && seen) {
    recovered.observed = true;
    recovered.now = std::max(*seen, floor);
    return recovered;
  }
  int64_t elapsed_ms = 0;
  if (recovered.same_boot) {
    // The boot clocks' difference passed. A reading behind the mark adds nothing.
    elapsed_ms = std::max<int64_t>(0, sample.boottime_ms - mark.machine.boottime_ms);
  } else {
    // Another boot: only wall clocks compare. Anyone may have set a wall clock, so the gap is
    // clamped. A jump ahead would reclaim live tokens; a gap cut short makes deadlines late.
    elapsed_ms = std::clamp<int64_t>(recovered.wall_gap_ms, 0, kRebootGapMsMax);
    recovered.clamped = elapsed_ms != recovered.wall_gap_ms;
  }
  // The last seal may be younger than the mark: time must not go back behind it.
  recovered.now = std::max(Instant{mark.ledger_ms} + elapsed_ms, floor);
  return recovered;
}

}  // namespace nowcalls::ledger
