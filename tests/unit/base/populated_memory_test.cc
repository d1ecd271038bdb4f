#include "base/populated_memory.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace nowcalls {
namespace {

// Whether every page that lies wholly in these bytes is there.
bool IsThere(char* begin, size_t bytes) {
  const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t from = (first + page_bytes - 1) / page_bytes * page_bytes;
  const uintptr_t to = (first + bytes) / page_bytes * page_bytes;
  REQUIRE(from < to);
  std::vector<unsigned char> pages((to - from) / page_bytes);
  REQUIRE(mincore(begin + (from - first), to - from, pages.data()) == 0);
  return std::all_of(pages.begin(), pages.end(), [](unsigned char page) { return page % 2 == 1; });
}

constexpr size_t kLarge = 8 * 1024 * 1024;

TEST_CASE("memory that is asked for with its pages has them, none of it touched") {
  std::vector<char> untouched = [] {
    std::vector<char> memory;
    memory.reserve(kLarge);
    return memory;
  }();
  CHECK_FALSE(IsThere(untouched.data(), kLarge));  // Or the next checks tell nothing.
  PopulatedVector<char> memory;
  memory.reserve(kLarge);
  CHECK(IsThere(memory.data(), kLarge));
}

TEST_CASE("what the memory is for is made in it, and ended") {
  const auto numbers = MakePopulated<std::array<uint64_t, 1000>>();
  CHECK(std::count(numbers->begin(), numbers->end(), 0) == 1000);
  const auto shared = std::make_shared<int>(7);
  {
    PopulatedVector<std::shared_ptr<int>> many;
    for (int i = 0; i < 10'000; ++i) many.push_back(shared);
    const auto one = MakePopulated<std::shared_ptr<int>>();
    *one = shared;
    CHECK(shared.use_count() == 10'002);
  }
  CHECK(shared.use_count() == 1);
}

TEST_CASE("less than a page, or nothing, is just memory") {
  PopulatePages(nullptr, 0);
  char bytes[3] = {'a', 'b', 'c'};
  PopulatePages(bytes, sizeof(bytes));
  CHECK(bytes[2] == 'c');
  PopulatedVector<int> none;
  none.reserve(0);
  none.push_back(7);
  CHECK(none[0] == 7);
}

}  // namespace
}  // namespace nowcalls
