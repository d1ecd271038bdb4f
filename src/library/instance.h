// The number that tells this process from others under the same client id.
//
// Thread: any.
#ifndef NOWCALLS_LIBRARY_INSTANCE_H_
#define NOWCALLS_LIBRARY_INSTANCE_H_

#include <cstdint>

namespace nowcalls::library {

// 1 .. 2^63-1, drawn once a process; a forked child draws its own.
uint64_t ProcessInstance();

}  // namespace nowcalls::library

#endif  // NOWCALLS_LIBRARY_INSTANCE_H_
