// The rules of one scan step that do not depend on the store: where each family's walk begins and
// ends, and when the step is over.
//
// Thread: scan.
#ifndef NOWCALLS_STORE_SCAN_WALK_H_
#define NOWCALLS_STORE_SCAN_WALK_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "ledger/scan.h"

namespace nowcalls::store {

// Keys from `lower` on and before `upper`; may be empty, then lower >= upper.
struct KeyRange {
  std::string lower;
  std::string upper;
};

class ScanWalk {
 public:
  // Clears `result`. Both pointers must outlive the walk.
  ScanWalk(const ledger::ScanRequest& request, ledger::ScanResult* result);

  // False for the families that the steps before have finished.
  bool Visits(ledger::Family family) const;
  KeyRange RangeIn(ledger::Family family) const;

  // Takes the next expired key. False when the step is over: `more` or `status` says why.
  bool Take(ledger::Family family, std::string_view key);

 private:
  const ledger::ScanRequest& request_;
  ledger::ScanResult* result_;
  int64_t stop_at_us_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_SCAN_WALK_H_
