// Foreign text (peers, servers, files, ledgers) for terminals, logs and JSON that people read.
//
// Thread: any; pure.
#ifndef NOWCALLS_BASE_SHOWN_TEXT_H_
#define NOWCALLS_BASE_SHOWN_TEXT_H_

#include <string>
#include <string_view>

#include "nowcalls/param.h"

namespace nowcalls {

// One line. Control characters and bytes that are not UTF-8 become \xNN. Characters that nobody
// sees, that look like a blank or that reorder others become \u{N}.
std::string ShownText(std::string_view text);

// Remains the same JSON: invisible characters and DEL to U+009F become \uNNNN. REQUIRES: UTF-8.
std::string ShownJson(std::string_view json);

// No two values look alike: 7 is an int, 7.0 a double, "7" a string, others name the type: "long
// 7". Unmistakable strings have no quotes. REQUIRES: bytes of the type's width.
std::string ShownParam(const Param& param);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_SHOWN_TEXT_H_
