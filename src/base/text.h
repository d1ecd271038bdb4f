// Text that peers and operators send: what may become a name, and how to show the rest.
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

// Empty, or nothing but spaces, tabs and ends of lines.
bool IsBlank(std::string_view text);

// `text` for a log line or an error message: in single quotes, at most `bytes_max` bytes of it
// ("..." says that there is more), bytes that are not printable ASCII as \xNN.
std::string Quoted(std::string_view text, size_t bytes_max = 64);

// `text` for a log line: whole when it has at most `bytes_max` bytes; else its beginning and its
// end, in no more than that, with "..." between. No UTF-8 character is cut.
std::string Shortened(std::string_view text, size_t bytes_max = 256);

// ShownText (base/shown_text.h) for a place where nothing would be overlooked: "-" when `text` is
// empty. Control characters, bytes that are not UTF-8 and characters that nobody sees, or that
// reorder others, are escaped.
std::string TerminalText(std::string_view text);

// `text` with its lines broken between words, so that none is longer than `width` characters unless
// a word is. Lines go on where the last column of the broken one begins: behind its first two
// spaces or more, or behind its indentation. For the help of programs.
std::string Wrapped(std::string_view text, size_t width);

// The shortest text that reads as the same number: "2", "2.5".
std::string NumberText(double value);

// What is wrong with a command line that has an option with '=' and no value, for the first such
// option: "--data-dir= is empty; give it a value, or leave it out". A parser would take the next
// word for the value. nullopt when there is none; words behind "--" are no options.
std::optional<std::string> EmptyOption(int argc, const char* const* argv);

// What a name may be: 1..bytes_max bytes of printable UTF-8. kInvalidArgument completes a sentence
// that begins with the field's name: "must be 1..128 bytes, got 0".
Status CheckName(std::string_view name, size_t bytes_max);
Status CheckNamespace(std::string_view name);
// Of a rule source (nowcalls/rule_source.h).
Status CheckRuleSource(std::string_view name);
// Nor does a client id start with '@', which marks the sessions of connections that declared none.
Status CheckClientId(std::string_view id);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_TEXT_H_
