// What tests of waiters ask for, and of which rule.
#ifndef NOWCALLS_UNIT_CORE_WAITING_CALLS_H_
#define NOWCALLS_UNIT_CORE_WAITING_CALLS_H_

#include <cstdint>

#include "support/core_harness.h"

namespace nowcalls::core {

inline AcquireRequest Wait(int64_t count = 1, int64_t wait_ms = 1000, bool prioritized = false) {
  return {.flow = FlowId{1}, .count = count, .prioritized = prioritized, .wait_ms = wait_ms};
}

// The level is two for each session that is online.
inline testing::RuleOptions TwoEach(int64_t max_per_client) {
  return {.flow = 1,
          .count = 2,
          .avg_local = true,
          .resource_timeout_ms = 100'000,
          .client_offline_ms = 100'000,
          .max_per_client = max_per_client};
}

}  // namespace nowcalls::core

#endif  // NOWCALLS_UNIT_CORE_WAITING_CALLS_H_
