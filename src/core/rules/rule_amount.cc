#include "core/rules/rule_amount.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace nowcalls::core {

std::string IntervalText(int64_t interval_ms) {
  constexpr struct {
    int64_t ms;
    const char* unit;
  } kUnits[] = {{86'400'000, "d"}, {3'600'000, "h"}, {1000, "s"}};
  for (const auto& [ms, unit] : kUnits) {
    if (interval_ms % ms == 0) return std::to_string(interval_ms / ms) + unit;
  }
  return std::to_string(interval_ms) + "ms";
}

std::string CallsText(double calls) {
  constexpr double kWholeMax = 9007199254740992;  // 2^53
  if (calls < kWholeMax && std::floor(calls) == calls) {
    return std::to_string(static_cast<int64_t>(calls));
  }
  constexpr size_t kBytes = 32;
  std::array<char, kBytes> text{};
  const int length = std::snprintf(text.data(), text.size(), "%.10g", calls);
  return {text.data(), static_cast<size_t>(length)};
}

std::string AmountText(const Rule& rule, double count) {
  const double calls = rule.says_rate() ? rule.CallsInInterval(count) : count;
  const bool is_share = rule.threshold_type == ThresholdType::kAvgLocal;
  const std::string text = is_share ? CallsText(calls) : std::to_string(WholeCalls(calls));
  return rule.says_rate() ? text + " in " + IntervalText(rule.rate_interval_ms()) : text;
}

}  // namespace nowcalls::core
