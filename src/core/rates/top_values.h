// TopValues: the most used values of a flow's parameter, for the listing `params`.
//
// Thread: loop. Cost: 12 ns a key of the server, 10 to 130 ns a value that the rule remembers, at
// most kParamValuesMax.
#ifndef NOWCALLS_CORE_RATES_TOP_VALUES_H_
#define NOWCALLS_CORE_RATES_TOP_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/books.h"
#include "core/rates/recent_calls.h"
#include "core/tables/slot.h"

namespace nowcalls::core {

struct ValueUse {
  KeySlot key{};      // kNoKey: no token holds the value, and no acquire waits for it.
  ValueSlot value{};  // kNoValue: no calls a second are remembered of it.
  int64_t now_calls = 0;
  RecentCalls::Counts recent{};  // In about the last interval of the rule.
  RecentCalls::Counts minute{};  // In about the last minute.
};

// The order of values of equal nowCalls.
enum class TopBy : uint8_t { kInterval, kMinute };

// At most `limit` values, 1 or more, valid until the next call that changes the core. Order: most
// nowCalls, then most passed, then most blocked. Values without any of these, and without a waiter,
// are left out.
std::vector<ValueUse> TopValues(const Books& books, FlowSlot slot, size_t limit, int64_t now_ms,
                                TopBy by = TopBy::kInterval);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RATES_TOP_VALUES_H_
