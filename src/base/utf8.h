// Whether bytes are well-formed UTF-8 (RFC 3629: no overlong forms, surrogates or values past
// U+10FFFF).
#ifndef NOWCALLS_BASE_UTF8_H_
#define NOWCALLS_BASE_UTF8_H_

#include <string_view>

namespace nowcalls {

bool IsUtf8(std::string_view text);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_UTF8_H_
