// Lane: the calls that count against a limit, and the acquires that wait under it.
//
// Thread: loop. A flow is a lane. Under a rule with a parameter each value in use is a lane, too: a
// full value never delays another.
#ifndef NOWCALLS_CORE_TABLES_LANE_H_
#define NOWCALLS_CORE_TABLES_LANE_H_

#include <cstdint>
#include <memory>

#include "core/tables/wait_queues.h"

namespace nowcalls::core {

struct Lane {
  int64_t now_calls = 0;               // Sum of count over its tokens.
  double level_count = 0;              // What the rule says of it; see FlowTable::LevelOf.
  std::unique_ptr<WaitQueue> waiters;  // Null until somebody has waited.
  bool to_wake = false;                // In the wake list.

  uint32_t waiting() const { return waiters == nullptr ? 0 : waiters->size(); }
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TABLES_LANE_H_
