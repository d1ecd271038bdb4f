// MachineClock: the time of a recovered ledger by the clocks of this machine.
//
// Thread: loop.
#ifndef NOWCALLS_RECOVERY_MACHINE_CLOCK_H_
#define NOWCALLS_RECOVERY_MACHINE_CLOCK_H_

#include "base/clock.h"
#include "ledger/clock.h"
#include "recovery/recovery.h"

namespace nowcalls::recovery {

class MachineClock final : public ledger::Clock {
 public:
  explicit MachineClock(const RecoveredLedger& ledger)
      : clock_(ledger.clock), boot_id_(ledger.boot_id) {}

  Instant Now() const override { return clock_.At(BoottimeMs()); }
  ClockSample Sample() const override { return {BoottimeMs(), WallMs(), boot_id_}; }

 private:
  ledger::LedgerClock clock_;
  BootId boot_id_;
};

}  // namespace nowcalls::recovery

#endif  // NOWCALLS_RECOVERY_MACHINE_CLOCK_H_
