// RateTable: what is remembered of the rates of flows and namespaces.
//
// Thread: loop. A flow has a state from its first request on, until it is erased or its rule gets
// another window. Rates decides what passes.
#ifndef NOWCALLS_CORE_RATE_TABLE_H_
#define NOWCALLS_CORE_RATE_TABLE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "core/rules/rule.h"
#include "core/sliding_window.h"
#include "core/slot.h"

namespace nowcalls::core {

// Since the server started, in calls but where it says requests.
struct RateCounters {
  uint64_t passed = 0;
  uint64_t blocked = 0;
  uint64_t borrowed = 0;  // Passed later: SHOULD_WAIT.
  uint64_t requests_passed = 0;
  uint64_t requests_blocked = 0;
};

struct FlowRate {
  explicit FlowRate(const Rule& rule)
      : sample_count(rule.sample_count), window(rule.window_interval_ms, rule.sample_count) {}

  bool Fits(const Rule& rule) const {
    return sample_count == rule.sample_count && window.interval_ms() == rule.window_interval_ms;
  }

  int32_t sample_count;
  SlidingWindow window;
  RateCounters counters;
};

class RateTable {
 public:
  // The flow's state, made now if there is none or the rule has got another window.
  FlowRate& Of(FlowSlot slot, const Rule& rule);
  // Null: nobody has asked yet.
  const FlowRate* Find(FlowSlot slot) const;
  void Erase(FlowSlot slot);

  // Requests of the namespace's rules in the last second.
  SlidingWindow& Guard(NamespaceSlot slot);

 private:
  std::vector<std::unique_ptr<FlowRate>> flows_;        // By slot.
  std::vector<std::unique_ptr<SlidingWindow>> guards_;  // By slot.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RATE_TABLE_H_
