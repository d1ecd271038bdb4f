#include "base/json_shape.h"

#include <algorithm>

namespace nowcalls {

JsonShape ShapeOfJson(std::string_view text, const JsonShape& max) {
  JsonShape shape;
  int depth = 0;
  for (size_t i = 0; i < text.size(); i = text[i] == '"' ? EndOfJsonString(text, i) : i + 1) {
    // Brackets of both kinds count as one: text that mixes them is the parser's to refuse. Strings
    // are passed over, since brackets and commas in them mean nothing.
    const char c = text[i];
    if (c == '[' || c == '{') shape.depth = std::max(shape.depth, ++depth);
    if (c == ']' || c == '}') --depth;
    if (c == '[' || c == '{' || c == ',') ++shape.values;
    if (shape.depth > max.depth || shape.values > max.values) break;
  }
  return shape;
}

size_t EndOfJsonString(std::string_view text, size_t begin) {
  size_t i = begin + 1;
  for (; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
  return std::min(i + 1, text.size());
}

}  // namespace nowcalls
