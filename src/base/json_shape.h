// The cost of a JSON document, told without building one.
//
// Thread: any; pure. The text need not be JSON; the parser refuses it then.
#ifndef NOWCALLS_BASE_JSON_SHAPE_H_
#define NOWCALLS_BASE_JSON_SHAPE_H_

#include <cstddef>
#include <string_view>

namespace nowcalls {

struct JsonShape {
  int depth = 0;      // Of the deepest array or object; 0: neither.
  size_t values = 1;  // An upper bound: 1 + commas + opening brackets.
};

// `text` has no comments. Stops when the shape exceeds `max`.
JsonShape ShapeOfJson(std::string_view text, const JsonShape& max);

// Returns the first byte behind the string, or the end of the text.
size_t EndOfJsonString(std::string_view text, size_t begin);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_JSON_SHAPE_H_
