#include "node/standby.h"

#include <string>

#include "base/check.h"

namespace nowcalls::node {

Result<bool> Standby::Follow(size_t batches_max) {
  Result<bool> more = replay_.Apply(batches_max);
  // Nobody else writes batches of this term, and this node has written none.
  if (phase_ == Phase::kRecovering && replay_.term() >= term_) phase_ = Phase::kStandby;
  return more;
}

Status Standby::TakeOver(uint64_t term) {
  NOWCALLS_CHECK(phase_ == Phase::kStandby);
  if (term <= replay_.term()) {
    return Status::InvalidArgument("the claim of term " + std::to_string(term) +
                                   " is not later than term " + std::to_string(replay_.term()) +
                                   " of the log");
  }
  phase_ = Phase::kRecovering;
  term_ = term;
  return {};
}

}  // namespace nowcalls::node
