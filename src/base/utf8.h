// UTF-8 as RFC 3629 has it: no overlong forms, surrogates or values past U+10FFFF.
//
// Thread: any.
#ifndef NOWCALLS_BASE_UTF8_H_
#define NOWCALLS_BASE_UTF8_H_

#include <cstddef>
#include <string_view>

namespace nowcalls {

// The bytes of the well-formed sequence that begins at `text[at]`, 1..4; 0 when none does.
// REQUIRES: at < text.size().
size_t Utf8LengthAt(std::string_view text, size_t at);

bool IsUtf8(std::string_view text);

// Whether a person cannot see the character, takes it for a blank (U+0020 is the only one that is
// none of these), or it changes the order or the lines in which others are shown.
bool IsInvisible(char32_t character);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_UTF8_H_
