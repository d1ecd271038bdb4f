// The nesting of a TOML document, bounded before a parser sees it.
//
// Thread: any; pure. The text need not be TOML; the parser refuses it then.
#ifndef NOWCALLS_BASE_TOML_SHAPE_H_
#define NOWCALLS_BASE_TOML_SHAPE_H_

#include <string>
#include <string_view>

#include "nowcalls/status.h"

namespace nowcalls {

// kInvalidArgument: a string of several lines, or more dots outside of strings than a parser's
// stack bears. `noun`: what the document is made of, such as "setting".
Status CheckTomlShape(std::string_view text, const std::string& noun);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_TOML_SHAPE_H_
