#include "base/param_text.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <system_error>

#include "base/bytes.h"
#include "base/check.h"
#include "base/near_name.h"

namespace nowcalls {
namespace {

// std::from_chars of the whole text, which may begin with a plus sign as in Java and Go.
template <typename T>
std::optional<T> Parsed(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  T value{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

template <typename T>
std::optional<ParamValue> IntegerFrom(ParamType type, std::string_view text) {
  const std::optional<T> value = Parsed<T>(text);
  if (!value.has_value()) return std::nullopt;
  ParamValue param(type, {});
  AppendBigEndian(&param.bytes, *value);
  return param;
}

template <typename T, typename Bits>
std::optional<ParamValue> FloatFrom(ParamType type, std::string_view text) {
  const std::optional<T> value = Parsed<T>(text);
  if (!value.has_value() || !std::isfinite(*value)) return std::nullopt;
  ParamValue param(type, {});
  AppendBigEndian(&param.bytes, std::bit_cast<Bits>(*value));
  return param;
}

std::optional<ParamValue> BooleanFrom(std::string_view text) {
  const std::string lower = PlainName(text);
  if (lower.size() != text.size()) return std::nullopt;  // It had a hyphen or an underscore.
  if (lower == "true") return ParamValue(ParamType::kBoolean, std::string(1, '\1'));
  if (lower == "false") return ParamValue(ParamType::kBoolean, std::string(1, '\0'));
  return std::nullopt;
}

template <typename T>
std::string TextOfInteger(const Param& param) {
  NOWCALLS_CHECK(param.bytes.size() == sizeof(T));
  return std::to_string(LoadBigEndian<T>(param.bytes.data()));
}

template <typename T, typename Bits>
std::string TextOfFloat(const Param& param) {
  NOWCALLS_CHECK(param.bytes.size() == sizeof(T));
  constexpr size_t kTextBytesMax = 32;
  char text[kTextBytesMax];
  const auto value = std::bit_cast<T>(LoadBigEndian<Bits>(param.bytes.data()));
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace

std::string_view ParamTypeName(ParamType type) {
  switch (type) {
    case ParamType::kInt: return "int";
    case ParamType::kLong: return "long";
    case ParamType::kByte: return "byte";
    case ParamType::kDouble: return "double";
    case ParamType::kFloat: return "float";
    case ParamType::kShort: return "short";
    case ParamType::kBoolean: return "boolean";
    case ParamType::kString: return "string";
  }
  return "unknown";
}

std::optional<ParamValue> ParamFromText(ParamType type, std::string_view text) {
  switch (type) {
    case ParamType::kInt: return IntegerFrom<int32_t>(type, text);
    case ParamType::kLong: return IntegerFrom<int64_t>(type, text);
    case ParamType::kByte: return IntegerFrom<int8_t>(type, text);
    case ParamType::kShort: return IntegerFrom<int16_t>(type, text);
    case ParamType::kDouble: return FloatFrom<double, uint64_t>(type, text);
    case ParamType::kFloat: return FloatFrom<float, uint32_t>(type, text);
    case ParamType::kBoolean: return BooleanFrom(text);
    case ParamType::kString: break;
  }
  if (text.size() > kParamBytesMax) return std::nullopt;
  return ParamValue(ParamType::kString, std::string(text));
}

ParamValue IntegerParam(int64_t value) {
  const bool is_int = value >= INT32_MIN && value <= INT32_MAX;
  ParamValue param(is_int ? ParamType::kInt : ParamType::kLong, {});
  if (is_int) {
    AppendBigEndian(&param.bytes, static_cast<int32_t>(value));
  } else {
    AppendBigEndian(&param.bytes, value);
  }
  return param;
}

std::string ParamText(const Param& param) {
  switch (param.type) {
    case ParamType::kInt: return TextOfInteger<int32_t>(param);
    case ParamType::kLong: return TextOfInteger<int64_t>(param);
    case ParamType::kByte: return TextOfInteger<int8_t>(param);
    case ParamType::kShort: return TextOfInteger<int16_t>(param);
    case ParamType::kDouble: return TextOfFloat<double, uint64_t>(param);
    case ParamType::kFloat: return TextOfFloat<float, uint32_t>(param);
    case ParamType::kBoolean:
      NOWCALLS_CHECK(param.bytes.size() == 1);
      return param.bytes[0] == 0 ? "false" : "true";
    case ParamType::kString: break;
  }
  return std::string(param.bytes);
}

}  // namespace nowcalls
