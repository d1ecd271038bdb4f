#include "base/toml_shape.h"

#include <cstddef>

namespace nowcalls {
namespace {

constexpr size_t kDotsMax = 4000;

// All that TOML or the parser takes for the end of a line, and more: the last bytes of U+0085,
// U+2028 and U+2029 end other characters, too.
bool MayEndLine(char c) {
  return (c >= '\n' && c <= '\r') || c == '\x85' || c == '\xa8' || c == '\xa9';
}

// The first byte behind the string that begins at `begin`. A string that its line does not close
// counts as one byte.
size_t EndOfString(std::string_view text, size_t begin) {
  const char quote = text[begin];
  bool escaped = false;
  for (size_t i = begin + 1; i < text.size() && !MayEndLine(text[i]); ++i) {
    if (text[i] == quote && !escaped) return i + 1;
    escaped = text[i] == '\\' && quote == '"' && !escaped;
  }
  return begin + 1;
}

}  // namespace

// Dots are counted before the parser sees them. Each part of a dotted key is a table within the one
// before, and parser and destructors recurse through them: a long key would overflow the stack.
// Strings of several lines are refused, since only a parser can tell keys from their text.
Status CheckTomlShape(std::string_view text, const std::string& noun) {
  for (const std::string_view quotes : {R"(""")", "'''"}) {
    if (text.find(quotes) == std::string_view::npos) continue;
    return Status::InvalidArgument(
        std::string(quotes) + " begins a string of several lines, which no " + noun + " needs");
  }
  size_t dots = 0;
  for (size_t i = 0; i < text.size();) {
    const bool is_string = text[i] == '"' || text[i] == '\'';
    dots += text[i] == '.' ? 1 : 0;
    i = is_string ? EndOfString(text, i) : i + 1;
  }
  if (dots <= kDotsMax) return {};
  return Status::InvalidArgument("more than " + std::to_string(kDotsMax) +
                                 " dots outside of strings; the keys of " + noun + "s have none");
}

}  // namespace nowcalls
