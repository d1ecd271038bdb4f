#include "core/rules/rule_values.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>

#include "base/near_name.h"

namespace nowcalls::core {
namespace {

using nlohmann::json;

// Doubles below this hold every integer exactly.
constexpr double kExactMax = 9e15;

std::string_view TextOf(const json& value) { return value.get_ref<const std::string&>(); }

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The text without blanks around it, a leading plus sign, and commas that group the digits before
// its point by three. nullopt: it has another comma, such as the decimal comma of "1,5".
std::optional<std::string> WithoutGrouping(std::string_view text) {
  constexpr char kBlanks[] = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return std::nullopt;
  text = text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
  const bool is_negative = text.front() == '-';
  if (is_negative || text.front() == '+') text.remove_prefix(1);
  if (text.empty() || !(IsDigit(text.front()) || text.front() == '.')) return std::nullopt;

  constexpr size_t kGroup = 3;
  std::string plain = is_negative ? "-" : "";
  size_t digits = 0;  // Since the last comma.
  bool grouped = false;
  bool whole = true;  // Before a point or an exponent.
  for (const char c : text) {
    if (c == ',') {
      const bool in_place = grouped ? digits == kGroup : digits > 0 && digits <= kGroup;
      if (!whole || !in_place) return std::nullopt;
      grouped = true;
      digits = 0;
      continue;
    }
    if (grouped && !IsDigit(c) && digits != kGroup) return std::nullopt;
    if (!IsDigit(c)) grouped = whole = false;
    ++digits;
    plain += c;
  }
  if (grouped && digits != kGroup) return std::nullopt;
  return plain;
}

template <typename T>
std::optional<T> Parsed(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

std::optional<int64_t> IntegerOfText(std::string_view text) {
  std::optional<std::string> plain = WithoutGrouping(text);
  if (!plain.has_value()) return std::nullopt;
  const size_t point = plain->find('.');
  if (point != std::string::npos) {
    if (plain->find_first_not_of('0', point + 1) != std::string::npos) return std::nullopt;
    plain->resize(point);
  }
  return Parsed<int64_t>(*plain);
}

}  // namespace

bool IsUnset(const json& value) {
  if (value.is_null()) return true;
  if (!value.is_string()) return false;
  const std::string_view text = TextOf(value);
  return text.empty() || text == "null" || text == "NULL";
}

std::optional<int64_t> IntegerOf(const json& value) {
  if (value.is_string()) return IntegerOfText(TextOf(value));
  if (value.is_number_unsigned()) {
    const auto v = value.get<uint64_t>();
    if (v > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<int64_t>(v);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double v = value.get<double>();
  if (std::floor(v) != v || std::abs(v) > kExactMax) return std::nullopt;
  return static_cast<int64_t>(v);
}

std::optional<double> NumberOf(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const std::optional<std::string> plain = WithoutGrouping(TextOf(value));
  return plain.has_value() ? Parsed<double>(*plain) : std::nullopt;
}

std::optional<bool> BooleanOf(const json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_string()) {
    const std::string_view text = TextOf(value);
    const std::string lower = PlainName(text);
    const bool as_written = lower.size() == text.size();  // No hyphen in it.
    if (text == "1" || text == "Y" || text == "y" || text == "T") return true;
    if (text == "0" || text == "F" || text == "f" || text == "N") return false;
    if (as_written && lower == "true") return true;
    if (as_written && lower == "false") return false;
    return std::nullopt;
  }
  if (!value.is_number()) return std::nullopt;
  const double v = value.get<double>();
  if (v != 0 && v != 1) return std::nullopt;
  return v == 1;
}

}  // namespace nowcalls::core
