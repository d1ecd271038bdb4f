// RateTable: what has passed of calls a second, of flows, of values of their parameters, and of
// namespaces.
//
// Thread: loop. A flow has a state from its first request on, until it is erased. Rates decides what
// passes.
#ifndef NOWCALLS_CORE_RATE_TABLE_H_
#define NOWCALLS_CORE_RATE_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/param_items.h"
#include "core/param_values.h"
#include "core/rules/rule.h"
#include "core/sliding_window.h"
#include "core/slot.h"

namespace nowcalls::core {

// Since the server started. Calls, but where the name says requests. A request for several values
// of a parameter counts its calls once.
struct RateCounters {
  uint64_t passed = 0;    // At once, also beyond the limit in shadow mode.
  uint64_t borrowed = 0;  // Passed, but were told to wait.
  uint64_t blocked = 0;
  uint64_t requests_passed = 0;  // At once or later.
  uint64_t requests_blocked = 0;
};

struct FlowRate {
  explicit FlowRate(const Rule& rule)
      : window(rule.window_interval_ms, rule.sample_count), items(rule) {}

  SlidingWindow window;  // Under a rule with a parameter it counts, and limits nothing.
  RateCounters counters;
  // Of a rule with a parameter.
  ParamItems items;
  FlowValues values;
};

class RateTable {
 public:
  RateTable(const std::array<uint64_t, 2>& hash_key, size_t value_bytes_max)
      : values_(hash_key, value_bytes_max) {}

  // The flow's state, new if there is none. `rule`: the one in force.
  FlowRate& Of(FlowSlot slot, const Rule& rule);
  // Null: nobody has asked yet.
  const FlowRate* Find(FlowSlot slot) const;
  // The rule of the flow is new or has changed. Its windows begin anew if they have got another
  // form; what has passed in them is kept otherwise.
  void OnNewRule(FlowSlot slot, const Rule& before, const Rule& rule);
  void Erase(FlowSlot slot);

  // Requests of the namespace's rules in the last second.
  SlidingWindow& Guard(NamespaceSlot slot);

  ParamValues& values() { return values_; }
  const ParamValues& values() const { return values_; }
  // Of all flows, also of flows that are gone.
  const RateCounters& totals() const { return totals_; }
  // Changes the flow's counters, and the totals likewise.
  template <typename Change>
  void Count(FlowRate* rate, Change change) {
    change(&rate->counters);
    change(&totals_);
  }

 private:
  std::vector<std::unique_ptr<FlowRate>> flows_;        // By slot.
  std::vector<std::unique_ptr<SlidingWindow>> guards_;  // By slot.
  ParamValues values_;
  RateCounters totals_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RATE_TABLE_H_
