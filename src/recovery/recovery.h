// Recover: makes a core that can serve, and its clock, from a store.
//
// Thread: loop, before the server serves.
#ifndef NOWCALLS_RECOVERY_RECOVERY_H_
#define NOWCALLS_RECOVERY_RECOVERY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "core/core.h"
#include "ledger/clock.h"
#include "nowcalls/status.h"
#include "store/log.h"
#include "store/store.h"
#include "store/tables.h"

namespace nowcalls::recovery {

struct RecoveredLedger {
  std::unique_ptr<core::Core> core;
  ledger::LedgerClock clock;
  BootId boot_id{};
  std::optional<ledger::RecoveredTime> time;  // None: nothing was ever committed.
  uint64_t rules = 0;
  uint64_t sessions = 0;
  uint64_t tokens = 0;
  std::map<std::string, std::string> rule_sources;  // By namespace that has rules.
  ledger::Format format{};  // As found; the core raises its version with its first batch.
  int64_t seal_ms = 0;      // Ledger time of the last batch; 0: nothing was ever committed.
  std::string future;  // A warning: what it tells of times behind its last batch. Mostly empty.
};

// By which a ledger's time goes on.
struct Clocks {
  std::function<Result<ClockSample>()> sample = SampleClocks;
  ledger::ObservedTime observed{};  // By a standby.
};

// Replays the log behind the tables, loads the tables and proves them complete. Restart grace
// counts from Clocks::sample until Core::Begin names another moment. kCorruption: damage; other
// codes are those of log and tables.
Result<RecoveredLedger> Recover(store::Log* log, store::Tables* tables,
                                const core::CoreOptions& options, const Clocks& clocks = {});

// The same of a store.
inline Result<RecoveredLedger> Recover(store::Store* store, const core::CoreOptions& options,
                                       const Clocks& clocks = {}) {
  return Recover(store, store, options, clocks);
}

}  // namespace nowcalls::recovery

#endif  // NOWCALLS_RECOVERY_RECOVERY_H_
