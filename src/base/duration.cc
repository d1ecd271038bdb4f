#include "base/duration.h"

#include <array>
#include <charconv>

#include "base/text.h"

namespace nowcalls {
namespace {

struct Unit {
  std::string_view name;
  int64_t ms;
};
constexpr std::array<Unit, 5> kUnits = {
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}}};
constexpr int64_t kDurationMsMax = int64_t{100} * 365 * 86'400'000;

Status Wrong(std::string_view text, std::string_view why) {
  return Status::InvalidArgument(Quoted(text) + " " + std::string(why));
}

// The index in kUnits of the letters that `text` begins with; kUnits.size() when they are none.
size_t UnitAt(std::string_view text) {
  const std::string_view letters = text.substr(0, text.find_first_of("0123456789"));
  size_t i = 0;
  while (i < kUnits.size() && kUnits[i].name != letters) ++i;
  return i;
}

std::string Pair(int64_t high, std::string_view high_unit, int64_t low, std::string_view low_unit) {
  std::string text = std::to_string(high);
  text += high_unit;
  if (low < 10) text += '0';
  text += std::to_string(low);
  text += low_unit;
  return text;
}

}  // namespace

Result<int64_t> ParseDuration(std::string_view text) {
  constexpr std::string_view kForm = "is not a duration such as 500ms, 10s, 5m, 2h or 1h30m";
  if (text.empty()) return Wrong(text, kForm);
  int64_t total_ms = 0;
  size_t next_unit = 0;
  for (std::string_view rest = text; !rest.empty();) {
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error == std::errc::result_out_of_range) return Wrong(text, "is too long a duration");
    if (error != std::errc()) return Wrong(text, kForm);
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    if (rest.empty()) return Wrong(text, "lacks a unit: ms, s, m, h or d");
    const size_t unit = UnitAt(rest);
    if (unit == kUnits.size()) return Wrong(text, kForm);
    // Each unit once, from large to small: "1m1h" and "1m1m" are slips.
    if (unit < next_unit) return Wrong(text, "does not name its units from large to small");
    next_unit = unit + 1;
    rest.remove_prefix(kUnits[unit].name.size());
    // The number has 32 bits and the largest unit 27, so neither the product nor the sum overflows.
    total_ms += number * kUnits[unit].ms;
    if (total_ms > kDurationMsMax) return Wrong(text, "is too long a duration");
  }
  return total_ms;
}

std::string HumanDuration(int64_t duration_ms) {
  if (duration_ms < 0) {
    return "-" + HumanDuration(duration_ms == INT64_MIN ? INT64_MAX : -duration_ms);
  }
  if (duration_ms < 1000) return std::to_string(duration_ms) + "ms";
  const int64_t seconds = duration_ms / 1000;
  if (seconds < 10) {
    return std::to_string(seconds) + "." + std::to_string(duration_ms % 1000 / 100) + "s";
  }
  if (seconds < 60) return std::to_string(seconds) + "s";
  if (seconds < 3600) return Pair(seconds / 60, "m", seconds % 60, "s");
  if (seconds < 86'400) return Pair(seconds / 3600, "h", seconds % 3600 / 60, "m");
  return Pair(seconds / 86'400, "d", seconds % 86'400 / 3600, "h");
}

int64_t MsSince(int64_t then_ms, int64_t now_ms) {
  int64_t since_ms = 0;
  if (!__builtin_sub_overflow(now_ms, then_ms, &since_ms)) return since_ms;
  return now_ms < then_ms ? INT64_MIN : INT64_MAX;
}

}  // namespace nowcalls
