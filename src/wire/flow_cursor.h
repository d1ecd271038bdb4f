// FlowCursor: the cursor of `flows` and `rules_list`: a flow id. The next page begins behind all
// flows of the id; with the highest bit, between its two flows.
//
// Thread: any.
#ifndef NOWCALLS_WIRE_FLOW_CURSOR_H_
#define NOWCALLS_WIRE_FLOW_CURSOR_H_

#include <cstdint>

#include "nowcalls/flow_kind.h"

namespace nowcalls::wire {

inline constexpr uint64_t kBetweenTheTwo = uint64_t{1} << 63;

// The last place that earlier pages covered.
constexpr FlowKey CoveredBy(uint64_t cursor) {
  const FlowId id{static_cast<int64_t>(cursor & ~kBetweenTheTwo)};
  return {id, (cursor & kBetweenTheTwo) != 0 ? FlowKind::kFlow : FlowKind::kValue};
}

// For a page that ended with `last`; the next one begins with `next`.
constexpr uint64_t FlowCursor(const FlowKey& last, const FlowKey& next) {
  const auto id = static_cast<uint64_t>(last.id.value);
  return last.id == next.id ? id | kBetweenTheTwo : id;
}

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_FLOW_CURSOR_H_
