// OnlyFlow: the flow of an id that has rules of one kind only.
//
// Thread: as the table's.
#ifndef NOWCALLS_SUPPORT_ONLY_FLOW_H_
#define NOWCALLS_SUPPORT_ONLY_FLOW_H_

#include <vector>

#include "base/check.h"
#include "core/tables/flow_table.h"

namespace nowcalls::core {

// kNoFlow: there is none. REQUIRES: not two.
inline FlowSlot OnlyFlow(const FlowTable& flows, int64_t id) {
  const std::vector<FlowSlot> slots = FindAll(flows, FlowId{id});
  NOWCALLS_CHECK(slots.size() <= 1);
  return slots.empty() ? kNoFlow : slots.front();
}

}  // namespace nowcalls::core

#endif  // NOWCALLS_SUPPORT_ONLY_FLOW_H_
