// What a simulated ledger holds, for the oracle.
//
// Thread: any.
#ifndef NOWCALLS_SIM_LEDGER_DUMP_H_
#define NOWCALLS_SIM_LEDGER_DUMP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/clock.h"
#include "sim/oracle.h"
#include "store/ledger_source.h"

namespace nowcalls::sim {

struct LedgerDump {
  std::vector<SeenToken> tokens;
  size_t sessions = 0;
  std::set<uint64_t> history;  // Tokens that it tells of.
  int64_t seal_ms = 0;         // Ledger time of the last batch.
  std::optional<BootId> boot;  // Of the machine that wrote the mark of the ledger's clock.
};

// An owner is NAMESPACE/CLIENT of the session; empty when the ledger lacks it.
LedgerDump DumpLedger(store::LedgerSource* store);

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_LEDGER_DUMP_H_
