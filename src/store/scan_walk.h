// ScanWalk: bounds and end of one scan step, for every store.
//
// Thread: scan.
#ifndef NOWCALLS_STORE_SCAN_WALK_H_
#define NOWCALLS_STORE_SCAN_WALK_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "ledger/scan.h"

namespace nowcalls::store {

// [lower, upper); empty if lower >= upper.
struct KeyRange {
  std::string lower;
  std::string upper;
};

class ScanWalk {
 public:
  // Clears `result`. Both arguments outlive the walk.
  ScanWalk(const ledger::ScanRequest& request, ledger::ScanResult* result);

  // False for families that earlier steps have finished.
  bool Visits(ledger::Family family) const;
  KeyRange RangeIn(ledger::Family family) const;

  // Takes the next expired key. False: the step is over; see `more` and `status`.
  bool Take(ledger::Family family, std::string_view key);

 private:
  const ledger::ScanRequest& request_;
  ledger::ScanResult* result_;
  int64_t stop_at_us_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_SCAN_WALK_H_
