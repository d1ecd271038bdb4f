#include "base/shown_text.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/hex.h"
#include "base/param_text.h"
#include "base/utf8.h"

namespace nowcalls {
namespace {

// The character of a well-formed sequence.
char32_t CharacterOf(std::string_view sequence) {
  const auto lead = static_cast<uint8_t>(sequence[0]);
  if (sequence.size() == 1) return lead;
  char32_t character = lead & (0x7f >> sequence.size());
  for (const char c : sequence.substr(1)) character = (character << 6) | (c & 0x3f);
  return character;
}

// Calls `each(sequence, character)` for what stands in `text`, in order. A byte of no well-formed
// sequence comes by itself, without a character.
template <typename Each>
void ForEachCharacter(std::string_view text, const Each& each) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8LengthAt(text, at);
    const std::string_view sequence = text.substr(at, length == 0 ? 1 : length);
    at += sequence.size();
    each(sequence, length == 0 ? std::nullopt : std::optional(CharacterOf(sequence)));
  }
}

// C0, DEL and C1, which terminals obey too.
bool IsControl(char32_t character) {
  return character < 0x20 || (character >= 0x7f && character < 0xa0);
}

void AppendUnit(uint32_t unit, std::string* out) {
  const char bytes[] = {static_cast<char>(unit >> 8), static_cast<char>(unit & 0xff)};
  *out += "\\u" + ToHex({bytes, 2});
}

// As JSON escapes it: in UTF-16.
void AppendJsonEscape(char32_t character, std::string* out) {
  if (character < 0x10000) return AppendUnit(character, out);
  const char32_t rest = character - 0x10000;
  AppendUnit(0xd800 + (rest >> 10), out);
  AppendUnit(0xdc00 + (rest & 0x3ff), out);
}

// "1e22" and "1.5" cannot be integers.
bool ReadsAsInteger(std::string_view number) {
  return number.find_first_not_of("-0123456789") == std::string_view::npos;
}

// Whether a string without quotes could be the text of a value of another type.
bool ReadsAsAnotherType(std::string_view text) {
  if (text.starts_with('"') || text == "-" || text.empty()) return true;
  for (int number = 0; number < kParamTypeCount; ++number) {
    const auto type = static_cast<ParamType>(number);
    if (type == ParamType::kString) continue;
    if (ParamFromText(type, text).has_value()) return true;
    const std::string_view name = ParamTypeName(type);
    if (text.starts_with(name) && text.substr(name.size()).starts_with(' ')) return true;
  }
  return false;
}

}  // namespace

std::string ShownText(std::string_view text) {
  std::string shown;
  ForEachCharacter(text, [&](std::string_view sequence, std::optional<char32_t> character) {
    // Bytes that are not UTF-8 have no number, so these and controls are shown as bytes.
    if (!character.has_value() || IsControl(*character)) {
      for (const char byte : sequence) shown += "\\x" + ToHex({&byte, 1});
    } else if (IsInvisible(*character)) {
      std::array<char, 8> digits{};
      char* const end = std::to_chars(digits.begin(), digits.end(), uint32_t{*character}, 16).ptr;
      shown.append("\\u{").append(digits.begin(), end).append("}");
    } else {
      shown += sequence;
    }
  });
  return shown;
}

std::string ShownJson(std::string_view json) {
  std::string shown;
  ForEachCharacter(json, [&](std::string_view sequence, std::optional<char32_t> character) {
    // JSON escapes characters below U+0020 in strings; outside, ends of lines are its own.
    if (character >= 0x7f && (IsControl(*character) || IsInvisible(*character))) {
      AppendJsonEscape(*character, &shown);
    } else {
      shown += sequence;
    }
  });
  return shown;
}

std::string ShownParam(const Param& param) {
  std::string text = ParamText(param);
  switch (param.type) {
    case ParamType::kInt:
    case ParamType::kBoolean: return text;
    case ParamType::kDouble: return ReadsAsInteger(text) ? text + ".0" : text;
    case ParamType::kString:
      return ReadsAsAnotherType(text) ? "\"" + ShownText(text) + "\"" : ShownText(text);
    default: break;
  }
  return std::string(ParamTypeName(param.type)) + " " + text;
}

}  // namespace nowcalls
