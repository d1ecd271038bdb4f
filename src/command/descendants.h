// SignalDescendants: a signal for all that this process started, and for all that those started,
// whatever their process groups and sessions are.
//
// Thread: one at a time. Takes no memory, so that a child forked beside threads may call it.
#ifndef NOWCALLS_COMMAND_DESCENDANTS_H_
#define NOWCALLS_COMMAND_DESCENDANTS_H_

#include <cstddef>

namespace nowcalls::command {

// How many were signalled: those that run and that this process may signal. A process that is
// forked meanwhile may be missed. Call it again until it returns 0 to end them all: as a subreaper
// (PR_SET_CHILD_SUBREAPER) this process inherits what its descendants leave behind. Without /proc
// nothing is found.
size_t SignalDescendants(int signal);

}  // namespace nowcalls::command

#endif  // NOWCALLS_COMMAND_DESCENDANTS_H_
