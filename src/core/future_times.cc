#include "core/future_times.h"

namespace nowcalls::core {

// Such times are no reason to refuse a ledger. The warning names the first and counts the others:
// one line for a ledger.
void FutureTimes::Note(const std::string& what, int64_t ms) {
  if (count_++ > 0) return;
  first_ = what + " by " + std::to_string(ms - sealed_ms_) + " ms";
}

std::string FutureTimes::Warning() const {
  if (count_ == 0) return {};
  const std::string others =
      count_ == 1 ? "" : ", and " + std::to_string(count_ - 1) + " more times after it";
  return "the ledger was written while a clock of the machine was set back: " + first_ +
         " behind the last batch" + others +
         ". A window of calls a second of the future is dropped; another time counts as that "
         "batch's";
}

}  // namespace nowcalls::core
