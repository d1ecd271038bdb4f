// What a simulated ledger holds, for the oracle.
//
// Thread: any.
#ifndef NOWCALLS_SIM_LEDGER_DUMP_H_
#define NOWCALLS_SIM_LEDGER_DUMP_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "sim/oracle.h"
#include "store/ledger_source.h"

namespace nowcalls::sim {

struct LedgerDump {
  std::vector<SeenToken> tokens;
  size_t sessions = 0;
  std::set<uint64_t> history;  // Tokens that it tells of.
};

// An owner is NAMESPACE/CLIENT of the session; empty when the ledger lacks it.
LedgerDump DumpLedger(store::LedgerSource* store);

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_LEDGER_DUMP_H_
