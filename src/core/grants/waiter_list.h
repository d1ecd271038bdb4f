// ListWaiters: waiters for the listing `waiters`.
//
// Thread: loop. Under a filter by client it looks at all waiters.
#ifndef NOWCALLS_CORE_GRANTS_WAITER_LIST_H_
#define NOWCALLS_CORE_GRANTS_WAITER_LIST_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/books.h"
#include "core/sight.h"
#include "core/tables/slot.h"
#include "core/tables/wait_queues.h"
#include "nowcalls/flow_kind.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

struct WaiterFilter {
  std::optional<FlowId> flow{};
  std::optional<FlowKind> kind{};
  std::optional<std::string_view> client_id{};
  std::optional<uint64_t> instance{};  // Of the client id.
};

struct WaiterPlace {
  WaiterSlot waiter;
  uint32_t place = 0;  // In the line of its flow, or of its value of the parameter; 1: the first.
};

// By flow id, the rule of the flow first, then by value and place. `sight`: as of Core::ListTokens.
// Valid until the next call that
// changes the core.
std::vector<WaiterPlace> ListWaiters(const Books& books, const WaitQueues& queues,
                                     const WaiterFilter& filter, size_t limit,
                                     const Sight& sight = {});

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_GRANTS_WAITER_LIST_H_
