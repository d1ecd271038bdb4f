// What comes from elsewhere (peers, servers, files, ledgers), made fit to be shown: for a terminal,
// for a line of a log, for JSON that a person may look at.
//
// Thread: any; pure.
#ifndef NOWCALLS_BASE_SHOWN_TEXT_H_
#define NOWCALLS_BASE_SHOWN_TEXT_H_

#include <string>
#include <string_view>

#include "nowcalls/param.h"

namespace nowcalls {

// `text` on one line, with nothing in it that a terminal obeys or that a person does not see.
// Control characters and bytes that are not UTF-8 become \xNN a byte. Characters that nobody sees,
// that look like a blank or that reorder others become \u{N}.
std::string ShownText(std::string_view text);

// The same for a JSON text, and it stays the same JSON: what nobody sees, and the control
// characters that JSON leaves alone, become \uNNNN. REQUIRES: `json` is UTF-8.
std::string ShownJson(std::string_view json);

// A value, so that no two look alike: 7 is an int, 7.0 a double, "7" a string, and of the others
// the type comes first: "long 7". Strings that cannot be taken for another type have no quotes.
// REQUIRES: bytes of the type's width.
std::string ShownParam(const Param& param);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_SHOWN_TEXT_H_
