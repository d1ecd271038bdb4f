// Lines on stderr.
//
// Thread: any.
#ifndef NOWCALLS_COMMAND_COMPLAIN_H_
#define NOWCALLS_COMMAND_COMPLAIN_H_

#include <string_view>

namespace nowcalls::command {

// Prints "nowcalls: what", escaped as base/shown_text.h says.
void Complain(std::string_view what);

}  // namespace nowcalls::command

#endif  // NOWCALLS_COMMAND_COMPLAIN_H_
