// A number with what it counts, for a person.
//
// Thread: any.
#ifndef NOWCALLS_BASE_COUNTED_H_
#define NOWCALLS_BASE_COUNTED_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace nowcalls {

// "1 rule", "2 rules". `noun`: the singular of a plural in "s".
inline std::string Counted(uint64_t count, std::string_view noun) {
  std::string text = std::to_string(count) + " ";
  text += noun;
  if (count != 1) text += "s";
  return text;
}

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_COUNTED_H_
