// A count of forks, to notice objects of a parent process by one load.
//
// Thread: any.
#ifndef NOWCALLS_LIBRARY_FORK_COUNT_H_
#define NOWCALLS_LIBRARY_FORK_COUNT_H_

#include <cstdint>

namespace nowcalls::library {

uint32_t ForkCount();

}  // namespace nowcalls::library

#endif  // NOWCALLS_LIBRARY_FORK_COUNT_H_
