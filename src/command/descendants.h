// SignalDescendants: a signal for all descendants, whatever their process group or session.
//
// Thread: one at a time, also in a child forked beside threads: allocates nothing.
#ifndef NOWCALLS_COMMAND_DESCENDANTS_H_
#define NOWCALLS_COMMAND_DESCENDANTS_H_

#include <cstddef>

namespace nowcalls::command {

// How many running ones it signalled; 0 without /proc. May miss one forked meanwhile: to end all,
// be a subreaper (PR_SET_CHILD_SUBREAPER) and repeat until it returns 0.
size_t SignalDescendants(int signal);

}  // namespace nowcalls::command

#endif  // NOWCALLS_COMMAND_DESCENDANTS_H_
