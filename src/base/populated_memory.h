// Memory whose pages are there when it is allocated.
//
// Thread: any. The first touch of a page is a fault, some 2 us in a virtual machine, half of which
// is the way there and back. So for what is filled at once anyway all pages are asked for together,
// where the system can do that (Linux 5.14).
#ifndef NOWCALLS_BASE_POPULATED_MEMORY_H_
#define NOWCALLS_BASE_POPULATED_MEMORY_H_

#include <cstddef>
#include <memory>
#include <vector>

namespace nowcalls {

// Has the pages that lie wholly in these bytes. When the system cannot, they come with their first
// touch, as ever.
void PopulatePages(void* begin, size_t bytes);

// std::allocator, with pages. For what is large, and soon full.
template <typename T>
struct PopulatingAllocator {
  using value_type = T;

  PopulatingAllocator() = default;
  template <typename U>
  PopulatingAllocator(const PopulatingAllocator<U>&) {}  // NOLINT(google-explicit-constructor)

  T* allocate(size_t count) {
    T* const memory = std::allocator<T>().allocate(count);
    PopulatePages(memory, count * sizeof(T));
    return memory;
  }
  void deallocate(T* memory, size_t count) { std::allocator<T>().deallocate(memory, count); }
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
