// The program `nowcalls`.
//
// Thread: the main one.
#ifndef NOWCALLS_COMMAND_MAIN_H_
#define NOWCALLS_COMMAND_MAIN_H_

namespace nowcalls::command {

// The exit code.
int Main(int argc, const char* const* argv);

}  // namespace nowcalls::command

#endif  // NOWCALLS_COMMAND_MAIN_H_
