// Memory with pages from the start: a fault costs some 2 us a page.
//
// Thread: any.
#ifndef NOWCALLS_BASE_POPULATED_MEMORY_H_
#define NOWCALLS_BASE_POPULATED_MEMORY_H_

#include <cstddef>
#include <memory>
#include <vector>

namespace nowcalls {

// Pages wholly within these bytes; before Linux 5.14 the first touch brings them.
void PopulatePages(void* begin, size_t bytes);

// For large and soon full memory.
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
