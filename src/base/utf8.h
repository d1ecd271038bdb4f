// UTF-8 as RFC 3629 has it: no overlong forms, surrogates or values past U+10FFFF.
//
// Thread: any.
#ifndef NOWCALLS_BASE_UTF8_H_
#define NOWCALLS_BASE_UTF8_H_

#include <cstddef>
#include <string_view>

namespace nowcalls {

// 1..4 bytes of the well-formed sequence there; 0: none. REQUIRES: at < text.size().
size_t Utf8LengthAt(std::string_view text, size_t at);

bool IsUtf8(std::string_view text);

// A person cannot see it, takes it for a blank (but U+0020), or it changes the order or lines of
// others.
bool IsInvisible(char32_t character);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_UTF8_H_
