// Asking for a cache line before it is read or written.
//
// Thread: any. Other than __builtin_prefetch these are done wherever they are written: GCC 12 takes
// a function that does nothing else for one without effects, and leaves out the calls of it.
#ifndef NOWCALLS_BASE_PREFETCH_H_
#define NOWCALLS_BASE_PREFETCH_H_

#include <cstddef>

namespace nowcalls {

// How far ahead of what is written: some lines, so that they are there in time.
inline constexpr size_t kPrefetchBytes = 320;

// Of the line at `at`; changes nothing. Any address may be given.
inline void PrefetchForReading(const void* at) {
#if defined(__x86_64__)
  __asm__ volatile("prefetcht0 %0" ::"m"(*static_cast<const char*>(at)));
#else
  __builtin_prefetch(at, 0);
  __asm__ volatile("");  // An effect.
#endif
}

// The same of a line that is written. One that another processor has read last is its, too, and a
// store to it waits until it has given it up, tens of nanoseconds; what follows waits behind it.
// Memory that goes back and forth between two threads and is filled from the front is worth it: the
// processor does not ask for lines ahead of stores as it does for loads.
inline void PrefetchForWriting(const void* at) {
#if defined(__x86_64__)
  // What __builtin_prefetch becomes without -mprfchw only asks for a copy to read.
  __asm__ volatile("prefetchw %0" ::"m"(*static_cast<const char*>(at)));
#else
  __builtin_prefetch(at, 1);
  __asm__ volatile("");
#endif
}

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_PREFETCH_H_
