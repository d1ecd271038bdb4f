// Memory whose pages are there when it is allocated, huge ones if it is large.
//
// Thread: any. The first touch of a page is a fault, some 2 us in a virtual machine, half of which
// is the way there and back. So for what is filled at once anyway all pages are asked for together,
// where the system can do that (Linux 5.14). And a processor knows where one or two thousand pages
// are: of 4 KiB those are 8 MiB at most, and each look beyond is a walk through the page tables
// first, some 50 ns there. So what is large lies on pages of 2 MiB, if the system has any ("never"
// in /sys/kernel/mm/transparent_hugepage/enabled: it has none).
#ifndef NOWCALLS_BASE_POPULATED_MEMORY_H_
#define NOWCALLS_BASE_POPULATED_MEMORY_H_

#include <cstddef>
#include <memory>
#include <vector>

namespace nowcalls {

struct FreeMemory {
  void operator()(void* memory) const;
};
using Memory = std::unique_ptr<void, FreeMemory>;

inline constexpr size_t kHugePageBytes = size_t{2} * 1024 * 1024;

// With its pages, as far as they lie wholly in it; when the system cannot, they come with their
// first touch, as ever. From half a huge page on it is a whole number of those. Throws
// std::bad_alloc as new does.
Memory AllocatePopulated(size_t bytes, size_t alignment);
// The same, but that all pages come with their first touch, and are small.
Memory AllocateUntouched(size_t bytes, size_t alignment);

// std::allocator, with pages. For what is large, and soon full.
template <typename T>
struct PopulatingAllocator {
  using value_type = T;

  PopulatingAllocator() = default;
  template <typename U>
  PopulatingAllocator(const PopulatingAllocator<U>&) {}  // NOLINT(google-explicit-constructor)

  T* allocate(size_t count) {
    return static_cast<T*>(AllocatePopulated(count * sizeof(T), alignof(T)).release());
  }
  void deallocate(T* memory, size_t /*count*/) { FreeMemory()(memory); }
  bool operator==(const PopulatingAllocator&) const { return true; }
};

template <typename T>
struct PopulatedDelete {
  void operator()(T* object) const {
    std::destroy_at(object);
    PopulatingAllocator<T>().deallocate(object, 1);
  }
};

template <typename T>
using PopulatedPtr = std::unique_ptr<T, PopulatedDelete<T>>;

template <typename T>
PopulatedPtr<T> MakePopulated() {
  T* const memory = PopulatingAllocator<T>().allocate(1);
  return PopulatedPtr<T>(std::construct_at(memory));
}

template <typename T>
using PopulatedVector = std::vector<T, PopulatingAllocator<T>>;

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_POPULATED_MEMORY_H_
