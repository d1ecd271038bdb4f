// The number of this process under its client id.
//
// Thread: any.
#ifndef NOWCALLS_LIBRARY_INSTANCE_H_
#define NOWCALLS_LIBRARY_INSTANCE_H_

#include <cstdint>

namespace nowcalls::library {

// 1 .. 2^63-1, drawn once a process, also in a forked child.
uint64_t ProcessInstance();

}  // namespace nowcalls::library

#endif  // NOWCALLS_LIBRARY_INSTANCE_H_
