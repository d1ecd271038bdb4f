// Allocations: how often memory was asked for, for tests that prove that it was not.
//
// Thread: any; each has its own count. Binaries whose tests ask are linked with the source beside
// this, and with the linker's --wrap (tests/unit/CMakeLists.txt), in every preset: operator new of
// the whole binary ends in malloc here, and so in that of a sanitizer, if there is one. Counted are
// all forms of new, and malloc, calloc and realloc of what is linked statically, which the
// nowcalls libraries are; not what shared libraries do within themselves.
#ifndef NOWCALLS_UNIT_ALLOCATION_COUNTER_H_
#define NOWCALLS_UNIT_ALLOCATION_COUNTER_H_

#include <cstdint>

namespace nowcalls::testing {

// Of this thread, since it began.
int64_t Allocations();

}  // namespace nowcalls::testing

#endif  // NOWCALLS_UNIT_ALLOCATION_COUNTER_H_
