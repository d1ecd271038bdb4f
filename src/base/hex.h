// Bytes as hexadecimal digits and back.
//
// Thread: any.
#ifndef NOWCALLS_BASE_HEX_H_
#define NOWCALLS_BASE_HEX_H_

#include <string>
#include <string_view>

#include "nowcalls/status.h"

namespace nowcalls {

// Lower case: "00ff".
std::string ToHex(std::string_view bytes);

// Digits of either case. kInvalidArgument: an odd number, or another character.
Result<std::string> FromHex(std::string_view digits);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_HEX_H_
