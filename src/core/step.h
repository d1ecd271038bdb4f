// Step: the moment of one call to the core, and the commit batch that takes the call's records.
//
// Thread: loop.
#ifndef NOWCALLS_CORE_STEP_H_
#define NOWCALLS_CORE_STEP_H_

#include <cstdint>

#include "base/time.h"
#include "ledger/commit_batch.h"

namespace nowcalls::core {

struct Step {
  // Looks of a step at due tokens, for each cause.
  static constexpr uint32_t kDueLooksMax = 1000;

  Instant now;
  ledger::CommitBatch* batch = nullptr;
  // Once the batch has so many due tokens (CommitBatch::due), later steps do the rest.
  uint32_t due_max = UINT32_MAX;

  bool has_room_for_due() const { return batch->due() < due_max; }
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_STEP_H_
