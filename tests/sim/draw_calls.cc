#include "sim/draw_calls.h"

#include <algorithm>

#include "sim/lanes.h"

namespace nowcalls::sim {

CallsWanted DrawCalls(const std::vector<SimRule>& rules, Prng* prng) {
  constexpr int64_t kNoRule = 1'000;  // Far from flows that have one.
  constexpr int64_t kMsPerSecond = 1'000;
  const SimRule& rule = rules[prng->Below(rules.size())];
  CallsWanted wanted{.flow = rule.flow};
  const auto limit =
      static_cast<int64_t>(rule.count * static_cast<double>(rule.window_ms)) / kMsPerSecond;
  wanted.count =
      prng->Below(2) == 0 ? prng->Between(1, std::max<int64_t>(1, limit / 3)) : prng->Between(1, 3);
  wanted.prioritized = prng->Below(5) == 0;
  wanted.misfit = prng->Below(50) == 0;
  if (prng->Below(100) == 0) {
    wanted.flow += kNoRule;
    wanted.misfit = false;
  }
  const bool by_value = (rule.keys > 0) != wanted.misfit;
  // Then the request means the other rule of the flow id.
  if (wanted.misfit && HasRule(rules, rule.flow, FlowKindIf(by_value))) wanted.misfit = false;
  if (!by_value) return wanted;
  const int64_t keys = std::max<int64_t>(1, rule.keys);
  for (int64_t values = prng->Below(3) == 0 ? prng->Between(1, 3) : 1; values > 0; --values) {
    wanted.lanes.push_back(LaneOf(wanted.flow, prng->Between(0, keys - 1)));
  }
  return wanted;
}

}  // namespace nowcalls::sim
