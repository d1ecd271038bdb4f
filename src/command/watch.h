// What `nowcalls flow`, `ping` and `top` do.
//
// Thread: the main one. Each returns the exit code.
#ifndef NOWCALLS_COMMAND_WATCH_H_
#define NOWCALLS_COMMAND_WATCH_H_

#include "command/arguments.h"

namespace nowcalls::command {

int ShowFlow(const Arguments& arguments);
int Ping(const Arguments& arguments);
int Top(const Arguments& arguments);

}  // namespace nowcalls::command

#endif  // NOWCALLS_COMMAND_WATCH_H_
