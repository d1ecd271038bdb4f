// Prefetches a cache line by an instruction of our own (README, decision 1).
//
// Thread: any.
#ifndef NOWCALLS_BASE_PREFETCH_H_
#define NOWCALLS_BASE_PREFETCH_H_

#include <cstddef>

namespace nowcalls {

inline constexpr size_t kPrefetchBytes = 320;

// Any address may be given.
inline void PrefetchForReading(const void* at) {
#if defined(__x86_64__)
  __asm__ volatile("prefetcht0 %0" ::"m"(*static_cast<const char*>(at)));
#else
  __builtin_prefetch(at, 0);
  __asm__ volatile("");  // An effect.
#endif
}

// For memory that two threads pass back and forth.
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
