// What a JSON text would cost to build documents of, found out without building any.
//
// Thread: any; pure. The text need not be JSON: what is none is the parser's to refuse, at the
// latest where these see more or less than it does.
#ifndef NOWCALLS_BASE_JSON_SHAPE_H_
#define NOWCALLS_BASE_JSON_SHAPE_H_

#include <cstddef>
#include <string_view>

namespace nowcalls {

struct JsonShape {
  int depth = 0;  // Of the deepest array or object; 0: neither.
  size_t values =
      1;  // As many as commas and opening brackets, and one: as many as there are, or more.
};

// Of a text without comments. It is looked at until the shape exceeds `max` in one of the two.
JsonShape ShapeOfJson(std::string_view text, const JsonShape& max);

// The first byte behind the string that begins at `begin`, or the end of the text.
size_t EndOfJsonString(std::string_view text, size_t begin);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_JSON_SHAPE_H_
