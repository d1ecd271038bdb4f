#include "base/populated_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace nowcalls {
namespace {

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

}  // namespace

void PopulatePages(void* begin, size_t bytes) {
  static const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(begin);
  // Pages that lie in part outside belong to others, too: they are left to the first touch.
  const uintptr_t from = (first + page_bytes - 1) / page_bytes * page_bytes;
  const uintptr_t to = (first + bytes) / page_bytes * page_bytes;
  if (from >= to) return;
  // Not checked: an old kernel refuses, and the first touch brings the pages.
  madvise(static_cast<char*>(begin) + (from - first), to - from, MADV_POPULATE_WRITE);
}

}  // namespace nowcalls
