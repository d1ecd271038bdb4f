// MappedMemory: pages from the system, apart from what malloc gives.
//
// Thread: any. A processor knows where one or two thousand pages are; of 4 KiB those are 8 MiB at
// most, and each look beyond is a walk through the page tables first. What is larger than that and
// is looked at here and there lies better on pages of 2 MiB, which the system gives or not
// (/sys/kernel/mm/transparent_hugepage/enabled). They are asked for only where that was measured:
// with the tables that a start fills with tokens it took longer (src/README.md).
#ifndef NOWCALLS_BASE_MAPPED_MEMORY_H_
#define NOWCALLS_BASE_MAPPED_MEMORY_H_

#include <cstddef>
#include <memory>

#include "base/populated_memory.h"

namespace nowcalls {

class MappedMemory {
 public:
  static constexpr size_t kHugePageBytes = size_t{2} * 1024 * 1024;

  // Zeros, whose pages come with their first touch, and are small also where the system gives huge
  // ones unasked. Throws std::bad_alloc, as OnHugePages does.
  static MappedMemory Untouched(size_t bytes);
  // All of it is there, as PopulatePages can have it; on huge pages if there are any, and a whole
  // number of them in any case.
  static MappedMemory OnHugePages(size_t bytes);

  // At the beginning of a page.
  void* data() const { return mapped_.get(); }

 private:
  struct Unmap {
    size_t bytes;
    void operator()(void* begin) const;
  };

  MappedMemory(void* begin, size_t bytes) : mapped_(begin, Unmap{bytes}) {}

  std::unique_ptr<void, Unmap> mapped_;
};

// As OnHugePages, for who gives them back with as many bytes.
void* MapHugePages(size_t bytes);
void UnmapHugePages(void* begin, size_t bytes);

// PopulatingAllocator, on huge pages what fills half of one at least. For what is looked at here
// and there.
template <typename T>
struct HugePageAllocator {
  using value_type = T;

  HugePageAllocator() = default;
  template <typename U>
  HugePageAllocator(const HugePageAllocator<U>&) {}  // NOLINT(google-explicit-constructor)

  T* allocate(size_t count) {
    if (!IsLarge(count)) return PopulatingAllocator<T>().allocate(count);
    return static_cast<T*>(MapHugePages(count * sizeof(T)));
  }
  void deallocate(T* memory, size_t count) {
    if (!IsLarge(count)) return PopulatingAllocator<T>().deallocate(memory, count);
    UnmapHugePages(memory, count * sizeof(T));
  }
  bool operator==(const HugePageAllocator&) const { return true; }

 private:
  static bool IsLarge(size_t count) {
    return count >= MappedMemory::kHugePageBytes / 2 / sizeof(T);
  }
};

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_MAPPED_MEMORY_H_
