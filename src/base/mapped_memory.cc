#include "base/mapped_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

#include "base/populated_memory.h"

#ifdef __SANITIZE_ADDRESS__  // GCC's.
#define NOWCALLS_FINDS_LEAKS
#endif
#ifdef __has_feature
#if __has_feature(address_sanitizer)  // Clang's.
#define NOWCALLS_FINDS_LEAKS
#endif
#endif

#ifdef NOWCALLS_FINDS_LEAKS
#include <sanitizer/lsan_interface.h>
#endif

namespace nowcalls {
namespace {

char* Map(size_t bytes) {
  void* const begin =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) throw std::bad_alloc();
  return static_cast<char*>(begin);
}

void UnmapIfAny(char* begin, size_t bytes) {
  if (bytes > 0) munmap(begin, bytes);
}

// What is only pointed to from here is no leak: the sanitizer looks at what malloc gave by itself.
void Register([[maybe_unused]] void* begin, [[maybe_unused]] size_t bytes) {
#ifdef NOWCALLS_FINDS_LEAKS
  __lsan_register_root_region(begin, bytes);
#endif
}

void Unregister([[maybe_unused]] void* begin, [[maybe_unused]] size_t bytes) {
#ifdef NOWCALLS_FINDS_LEAKS
  __lsan_unregister_root_region(begin, bytes);
#endif
}

void Return(void* begin, size_t bytes) {
  Unregister(begin, bytes);
  munmap(begin, bytes);
}

size_t WholeHugePages(size_t bytes) {
  constexpr size_t kPage = MappedMemory::kHugePageBytes;
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

void MappedMemory::Unmap::operator()(void* begin) const { Return(begin, bytes); }

MappedMemory MappedMemory::Untouched(size_t bytes) {
  char* const begin = Map(bytes);
  madvise(begin, bytes, MADV_NOHUGEPAGE);
  Register(begin, bytes);
  return {begin, bytes};
}

MappedMemory MappedMemory::OnHugePages(size_t bytes) {
  return {MapHugePages(bytes), WholeHugePages(bytes)};
}

// Of a huge page more than is wanted, what lies before and behind is given back.
void* MapHugePages(size_t bytes) {
  constexpr size_t kPage = MappedMemory::kHugePageBytes;
  const size_t whole = WholeHugePages(bytes);
  char* const mapped = Map(whole + kPage);
  const size_t before = -reinterpret_cast<uintptr_t>(mapped) % kPage;
  char* const begin = mapped + before;
  UnmapIfAny(mapped, before);
  UnmapIfAny(begin + whole, kPage - before);
  madvise(begin, whole, MADV_HUGEPAGE);
  PopulatePages(begin, whole);
  Register(begin, whole);
  return begin;
}

void UnmapHugePages(void* begin, size_t bytes) { Return(begin, WholeHugePages(bytes)); }

}  // namespace nowcalls
