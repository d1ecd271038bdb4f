// One bounded step of the sweep over expired tokens: request and result.
//
// Thread: made on the loop, worked on by the scan thread, handed back to the loop.
#ifndef NOWCALLS_LEDGER_SCAN_H_
#define NOWCALLS_LEDGER_SCAN_H_

#include <cstdint>
#include <vector>

#include "ledger/entities.h"
#include "nowcalls/status.h"

namespace nowcalls::ledger {

// Order: kTokenFamilies, then ascending keys. A resumed step with the same bounds stays in the
// first view: it may name tokens that ended or moved since.
struct ScanRequest {
  int64_t lower_ms = 0;      // No live token has a deadline below it (iterate_lower_bound).
  int64_t upper_ms = 0;      // Deadlines up to and including it are expired.
  bool resume = false;       // Go on behind `after` instead of at the beginning.
  TokenKey after;            // The last key of the step before.
  uint32_t keys_max = 1000;  // >= 1.
  int64_t budget_us = 0;     // Stop after this long, but not before one key; 0: no bound.
};

struct ScanResult {
  Status status;  // Not ok: what was found before the error is still in `expired`.
  std::vector<TokenKey> expired;
  bool more = false;  // keys_max or the budget ended the step; resume behind the last key.
};

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_SCAN_H_
