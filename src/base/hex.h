// Bytes as hexadecimal digits and back.
//
// Thread: any.
#ifndef NOWCALLS_BASE_HEX_H_
#define NOWCALLS_BASE_HEX_H_

#include <string>
#include <string_view>

#include "nowcalls/status.h"

namespace nowcalls {

// Two lower-case digits a byte: "00ff".
std::string ToHex(std::string_view bytes);

// The bytes of an even number of digits of either case, and nothing else. kInvalidArgument
// otherwise.
Result<std::string> FromHex(std::string_view digits);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_HEX_H_
