// Estimates of allocated memory, for figures and bounds.
//
// Thread: any; pure.
#ifndef NOWCALLS_BASE_ALLOCATED_H_
#define NOWCALLS_BASE_ALLOCATED_H_

#include <cstddef>
#include <string>

namespace nowcalls {

// Of an allocation, with the allocator's head.
constexpr size_t AllocatedBytes(size_t bytes) {
  constexpr size_t kHeadBytes = 16;
  return kHeadBytes + bytes;
}

// 0 for a text within its std::string.
inline size_t AllocatedBytes(const std::string& text) {
  static const size_t within = std::string().capacity();
  return text.capacity() > within ? AllocatedBytes(text.capacity() + 1) : 0;
}

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_ALLOCATED_H_
