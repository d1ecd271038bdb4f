// Names and other text of peers and operators.
//
// Thread: any.
#ifndef NOWCALLS_BASE_TEXT_H_
#define NOWCALLS_BASE_TEXT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "nowcalls/status.h"

namespace nowcalls {

// UTF-8 without control characters (U+0000..U+001F, U+007F..U+009F).
bool IsPrintable(std::string_view text);

// Only spaces, tabs and ends of lines.
bool IsBlank(std::string_view text);

// For messages: in single quotes, at most `bytes_max` bytes ("..." marks more), others than
// printable ASCII as \xNN.
std::string Quoted(std::string_view text, size_t bytes_max = 64);

// Beyond `bytes_max` the beginning and the end with "..." between. Cuts no UTF-8 character.
// REQUIRES: bytes_max > 3.
std::string Shortened(std::string_view text, size_t bytes_max = 256);

// ShownText (base/shown_text.h), but "-" for an empty text.
std::string TerminalText(std::string_view text);

// Breaks lines between words at `width`; they go on at the last column: behind the first two
// spaces, or the indentation.
std::string Wrapped(std::string_view text, size_t width);

// The shortest that reads back: "2", "2.5".
std::string NumberText(double value);

// A message about the first "--NAME=" without a value before "--"; nullopt: none.
std::optional<std::string> EmptyOption(int argc, const char* const* argv);

// 1..bytes_max bytes of printable UTF-8. kInvalidArgument completes "FIELD must be 1..128 bytes,
// got 0".
Status CheckName(std::string_view name, size_t bytes_max);
Status CheckNamespace(std::string_view name);
// Of nowcalls/rule_source.h.
Status CheckRuleSource(std::string_view name);
// Not with '@' in front, the mark of sessions without a client id.
Status CheckClientId(std::string_view id);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_TEXT_H_
