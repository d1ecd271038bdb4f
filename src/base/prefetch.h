// PrefetchForWriting: asks for a cache line before it is written.
//
// Thread: any. A line that another processor has read last is its, too, and a store to it waits
// until it has given it up, tens of nanoseconds; what follows waits behind it. Memory that goes
// back and forth between two threads and is filled from the front is worth it: the processor does
// not ask for lines ahead of stores as it does for loads.
#ifndef NOWCALLS_BASE_PREFETCH_H_
#define NOWCALLS_BASE_PREFETCH_H_

#include <cstddef>

namespace nowcalls {

// How far ahead of what is written: some lines, so that they are there in time.
inline constexpr size_t kPrefetchBytes = 320;

// Of the line at `at`; changes nothing, and may be given any address within an object.
inline void PrefetchForWriting(const char* at) {
#if defined(__x86_64__)
  // What __builtin_prefetch becomes without -mprfchw only asks for a copy to read.
  __asm__ volatile("prefetchw %0" ::"m"(*at));
#else
  __builtin_prefetch(at, 1);
#endif
}

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_PREFETCH_H_
