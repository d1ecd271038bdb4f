// What the sweeper asks of a store and what it gets: one bounded step of a walk over the expired
// range of the token families.
//
// Thread: made on the loop thread, worked on by the scan thread, handed back to the loop thread.
#ifndef NOWCALLS_LEDGER_SCAN_H_
#define NOWCALLS_LEDGER_SCAN_H_

#include <cstdint>
#include <vector>

#include "ledger/entities.h"
#include "nowcalls/status.h"

namespace nowcalls::ledger {

// The walk visits the families in the order of kTokenFamilies, each by ascending key. A step that
// resumes with the bounds of the step before goes on in the view of the ledger that the walk began
// with: it may name tokens that have ended or moved since, and never misses one that was there.
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
