// What `nowcalls exec`, `acquire`, `release` and `keep` do.
//
// Thread: the main one. Each returns the exit code.
#ifndef NOWCALLS_COMMAND_EXEC_H_
#define NOWCALLS_COMMAND_EXEC_H_

#include "command/arguments.h"

namespace nowcalls::command {

// REQUIRES: there is no other thread.
int Exec(const Arguments& arguments);

int AcquireForScript(const Arguments& arguments);
int ReleaseForScript(const Arguments& arguments);
int KeepForScript(const Arguments& arguments);

}  // namespace nowcalls::command

#endif  // NOWCALLS_COMMAND_EXEC_H_
