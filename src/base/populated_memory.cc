#include "base/populated_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace nowcalls {
namespace {

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

// The pages that lie wholly in the bytes.
void Populate(void* begin, size_t bytes) {
  static const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t from = (first + page_bytes - 1) / page_bytes * page_bytes;
  const uintptr_t to = (first + bytes) / page_bytes * page_bytes;
  if (from >= to) return;
  madvise(static_cast<char*>(begin) + (from - first), to - from, MADV_POPULATE_WRITE);
}

}  // namespace

void FreeMemory::operator()(void* memory) const { std::free(memory); }

Memory AllocateUntouched(size_t bytes, size_t alignment) {
  void* memory = nullptr;
  if (posix_memalign(&memory, std::max(alignment, sizeof(void*)), bytes) != 0) {
    throw std::bad_alloc();
  }
  return Memory(memory);
}

Memory AllocatePopulated(size_t bytes, size_t alignment) {
  if (bytes < kHugePageBytes / 2) {
    Memory memory = AllocateUntouched(bytes, alignment);
    Populate(memory.get(), bytes);
    return memory;
  }
  const size_t whole = (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  Memory memory = AllocateUntouched(whole, kHugePageBytes);
  madvise(memory.get(), whole, MADV_HUGEPAGE);
  Populate(memory.get(), whole);
  return memory;
}

}  // namespace nowcalls
