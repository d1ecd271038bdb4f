#include "bench/statistics.h"

#include <algorithm>
#include <cstdio>

namespace nowcalls::compare {

std::optional<Spread> SpreadOf(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  const bool even = values.size() % 2 == 0;
  const double median = even ? (values[middle - 1] + values[middle]) / 2 : values[middle];
  return Spread{median, values.front(), values.back()};
}

std::optional<double> Ratio(const std::optional<Spread>& part, const std::optional<Spread>& whole) {
  if (!part || !whole || whole->median == 0) return std::nullopt;
  return part->median / whole->median;
}

std::string Decimal(double value, int digits) {
  char text[400];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  std::string shown = text;
  const size_t first = shown.starts_with('-') ? 1 : 0;
  const size_t point = std::min(shown.find('.'), shown.size());
  for (size_t at = point; at > first + 3;) {
    at -= 3;
    shown.insert(at, ",");
  }
  return shown;
}

}  // namespace nowcalls::compare
