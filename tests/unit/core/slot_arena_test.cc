#include "core/slot_arena.h"

#include <doctest/doctest.h>

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

TEST_CASE("objects of a power of two bytes lie on one page each") {
  constexpr size_t kPage = 4096;
  SlotArena<Object, 100> arena;
  for (int i = 0; i < 250; ++i) {
    const auto begin = reinterpret_cast<uintptr_t>(&arena[arena.Take()]);
    CHECK(begin / kPage == (begin + sizeof(Object) - 1) / kPage);
  }
}

}  // namespace
}  // namespace nowcalls::core
