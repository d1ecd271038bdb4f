// How often the process was forked, to notice objects that were made by a process before.
//
// Thread: any. A system call such as getpid in each call of a client would cost more than this.
#ifndef NOWCALLS_LIBRARY_FORK_COUNT_H_
#define NOWCALLS_LIBRARY_FORK_COUNT_H_

#include <cstdint>

namespace nowcalls::library {

// Forks between the first process that asked and this one.
uint32_t ForkCount();

}  // namespace nowcalls::library

#endif  // NOWCALLS_LIBRARY_FORK_COUNT_H_
