#include "core/slot_arena.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace nowcalls::core {
namespace {

struct alignas(64) Object {
  std::shared_ptr<int> shared;
  int number = 7;
};

TEST_CASE("objects stay where they are, and are aligned, however many come") {
  const auto shared = std::make_shared<int>(0);
  {
    SlotArena<Object, 8> arena;
    std::vector<const Object*> addresses;
    for (Slot slot = 0; slot < 100; ++slot) {
      REQUIRE(arena.Take() == slot);
      CHECK(arena[slot].number == 7);
      arena[slot].shared = shared;
      arena[slot].number = static_cast<int>(slot);
      addresses.push_back(&arena[slot]);
      CHECK(reinterpret_cast<uintptr_t>(addresses.back()) % alignof(Object) == 0);
    }
    for (Slot slot = 0; slot < 100; ++slot) {
      CHECK(&arena[slot] == addresses[slot]);
      CHECK(arena[slot].number == static_cast<int>(slot));
    }
    CHECK(shared.use_count() == 101);
  }
  CHECK(shared.use_count() == 1);
}

TEST_CASE("a slot that is returned is taken again, with nothing of what was there") {
  const auto shared = std::make_shared<int>(0);
  SlotArena<Object, 2> arena;
  for (int i = 0; i < 5; ++i) arena[arena.Take()] = {shared, 1};
  arena.Return(3);
  arena.Return(1);
  CHECK(shared.use_count() == 4);
  CHECK(arena.Take() == 1);
  CHECK(arena.Take() == 3);
  CHECK(arena[1].shared == nullptr);
  CHECK(arena[1].number == 7);
  CHECK(arena.Take() == 5);
}

constexpr size_t kHuge = MappedMemory::kHugePageBytes;
constexpr Slot kOfHugePage = kHuge / sizeof(Object);

bool BeginsHugePage(const void* object) { return reinterpret_cast<uintptr_t>(object) % kHuge == 0; }

// Whether the page on which it begins is there.
bool IsThere(char* byte) {
  constexpr size_t kPage = 4096;
  const size_t in_page = reinterpret_cast<uintptr_t>(byte) % kPage;
  unsigned char page = 0;
  return mincore(byte - in_page, 1, &page) == 0 && page % 2 == 1;
}

TEST_CASE("the first chunk comes as it is touched, later ones on huge pages if they fill one") {
  SlotArena<Object, kOfHugePage> large;
  const Slot first = large.Take();
  CHECK(IsThere(reinterpret_cast<char*>(&large[first])));
  CHECK_FALSE(IsThere(reinterpret_cast<char*>(&large[first]) + kHuge / 2));
  while (large.Take() != kOfHugePage) continue;
  CHECK(BeginsHugePage(&large[kOfHugePage]));
  CHECK(IsThere(reinterpret_cast<char*>(&large[kOfHugePage]) + kHuge / 2));

  SlotArena<Object, 8> small;
  int on_huge_pages = 0;
  for (int chunk = 0; chunk < 6; ++chunk) {
    on_huge_pages += BeginsHugePage(&small[small.Take()]) ? 1 : 0;
    for (int i = 1; i < 8; ++i) small.Take();
  }
  CHECK(on_huge_pages < 5);  // One may by chance.
}

TEST_CASE("chunks of a huge page and more are memory like any other") {
  SlotArena<Object, kOfHugePage> arena;
  const Slot slots = 3 * kOfHugePage;
  for (Slot slot = 0; slot < slots; ++slot) arena[arena.Take()].number = static_cast<int>(slot);
  for (Slot slot = 0; slot < slots; slot += 97) {
    CHECK(arena[slot].number == static_cast<int>(slot));
  }
}

}  // namespace
}  // namespace nowcalls::core
