// Standby: a node before it leads.
//
// Thread: the writer of the tables.
//
// Order: Follow, now and then; after a claim TakeOver, and Follow again until the end of the log.
// Is phase() still kRecovering then, recovery::Recover follows, with the term in its options.
#ifndef NOWCALLS_NODE_STANDBY_H_
#define NOWCALLS_NODE_STANDBY_H_

#include <cstddef>
#include <cstdint>

#include "node/phase.h"
#include "nowcalls/status.h"
#include "recovery/replay.h"
#include "store/log.h"
#include "store/tables.h"

namespace nowcalls::node {

class Standby {
 public:
  // Both outlive it.
  Standby(store::Log* log, store::Tables* tables) : replay_(log, tables) {}

  // As recovery::Replay::Apply. A failure is final.
  Result<bool> Follow(size_t batches_max);

  // As recovery::Replay has them, of the last batch that Follow applied.
  uint64_t term() const { return replay_.term(); }
  int64_t ledger_ms() const { return replay_.ledger_ms(); }

  // This node has the claim of `term`. kInvalidArgument: Follow has applied a batch of that term,
  // or of a later one.
  Status TakeOver(uint64_t term);

  // kStandby or kRecovering. A batch of another claim that came later leads back to kStandby.
  Phase phase() const { return phase_; }

 private:
  recovery::Replay replay_;
  Phase phase_ = Phase::kStandby;
  uint64_t term_ = 0;  // While kRecovering.
};

}  // namespace nowcalls::node

#endif  // NOWCALLS_NODE_STANDBY_H_
