// Lane: what counts against one limit, and who waits for room under it.
//
// Thread: loop. A flow is a lane: all its tokens. Under a rule with a parameter, each value that
// tokens hold or waiters ask for is a lane of its own (core/key_table.h). So a full value never
// delays another. LaneRef (core/slot.h) names either; FlowTable finds it.
#ifndef NOWCALLS_CORE_LANE_H_
#define NOWCALLS_CORE_LANE_H_

#include <cstdint>
#include <memory>

#include "core/wait_queues.h"

namespace nowcalls::core {

struct Lane {
  int64_t now_calls = 0;               // Sum of count over its tokens.
  double level_count = 0;              // What the rule says of it; see FlowTable::LevelOf.
  std::unique_ptr<WaitQueue> waiters;  // Null until somebody has waited.
  bool to_wake = false;                // In the wake list.

  uint32_t waiting() const { return waiters == nullptr ? 0 : waiters->size(); }
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_LANE_H_
