#include "base/mapped_memory.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace nowcalls {
namespace {

constexpr size_t kHuge = MappedMemory::kHugePageBytes;

// How many of the pages are there; -1: some are not mapped at all.
int PagesThere(const MappedMemory& memory, size_t bytes) {
  std::vector<unsigned char> pages(bytes / static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  if (mincore(memory.data(), bytes, pages.data()) != 0) return -1;
  return static_cast<int>(
      std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page % 2 == 1; }));
}

int Pages(size_t bytes) {
  return static_cast<int>(bytes / static_cast<size_t>(sysconf(_SC_PAGESIZE)));
}

TEST_CASE("mapped memory begins a page, with zeros, and none is touched") {
  const MappedMemory memory = MappedMemory::Untouched(3 * kHuge);
  CHECK(reinterpret_cast<uintptr_t>(memory.data()) % 4096 == 0);
  CHECK(PagesThere(memory, 3 * kHuge) == 0);
  const char* const bytes = static_cast<const char*>(memory.data());
  CHECK(std::all_of(bytes, bytes + 3 * kHuge, [](char byte) { return byte == 0; }));
}

TEST_CASE("memory on huge pages is a whole number of them, all there, and unmapped at the end") {
  for (const size_t bytes : {size_t{1}, kHuge - 1, kHuge, kHuge + 1, 5 * kHuge}) {
    CAPTURE(bytes);
    const size_t whole = (bytes + kHuge - 1) / kHuge * kHuge;
    MappedMemory memory = MappedMemory::OnHugePages(bytes);
    CHECK(reinterpret_cast<uintptr_t>(memory.data()) % kHuge == 0);
    CHECK(PagesThere(memory, whole) == Pages(whole));
    char* const begin = static_cast<char*>(memory.data());
    std::fill(begin, begin + whole, 'x');
    const MappedMemory moved = std::move(memory);
    CHECK(moved.data() == begin);
    // NOLINTNEXTLINE(bugprone-use-after-move): that it is empty is what is tested.
    CHECK(memory.data() == nullptr);
  }
}

TEST_CASE("what was mapped is gone with its object") {
  void* begin = nullptr;
  {
    const MappedMemory memory = MappedMemory::OnHugePages(kHuge);
    begin = memory.data();
  }
  unsigned char page = 0;
  CHECK(mincore(begin, 1, &page) != 0);
}

bool BeginsHugePage(const void* begin) { return reinterpret_cast<uintptr_t>(begin) % kHuge == 0; }

using Vector = std::vector<uint64_t, HugePageAllocator<uint64_t>>;

TEST_CASE("a vector lies on huge pages if it fills half of one, and goes on and off them") {
  Vector values;
  constexpr size_t kHalf = kHuge / 2 / sizeof(uint64_t);
  values.reserve(kHalf);
  CHECK(BeginsHugePage(values.data()));
  for (uint64_t i = 0; i < 5 * kHalf; ++i) values.push_back(i);  // Moves three times.
  CHECK(BeginsHugePage(values.data()));
  for (uint64_t i = 0; i < values.size(); ++i) {
    if (values[i] != i) FAIL("value " << i << " is " << values[i]);
  }
  void* const large = values.data();
  values.resize(3);
  values.shrink_to_fit();
  CHECK(values == Vector{0, 1, 2});
  unsigned char page = 0;
  CHECK(mincore(large, 1, &page) != 0);
}

}  // namespace
}  // namespace nowcalls
