#include "core/tables/slot_arena.h"

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

using ObjectSlot = SlotOf<Object>;

TEST_CASE("objects stay where they are, and are aligned, however many come") {
  const auto shared = std::make_shared<int>(0);
  {
    SlotArena<ObjectSlot, Object, 8> arena;
    std::vector<const Object*> addresses;
    for (uint32_t i = 0; i < 100; ++i) {
      const ObjectSlot slot = arena.Take();
      REQUIRE(slot == ObjectSlot(i));
      CHECK(arena[slot].number == 7);
      arena[slot].shared = shared;
      arena[slot].number = static_cast<int>(i);
      addresses.push_back(&arena[slot]);
      CHECK(reinterpret_cast<uintptr_t>(addresses.back()) % alignof(Object) == 0);
    }
    for (uint32_t i = 0; i < 100; ++i) {
      CHECK(&arena[ObjectSlot(i)] == addresses[i]);
      CHECK(arena[ObjectSlot(i)].number == static_cast<int>(i));
    }
    CHECK(shared.use_count() == 101);
  }
  CHECK(shared.use_count() == 1);
}

TEST_CASE("a slot that is returned is taken again, with nothing of what was there") {
  const auto shared = std::make_shared<int>(0);
  SlotArena<ObjectSlot, Object, 2> arena;
  for (int i = 0; i < 5; ++i) arena[arena.Take()] = {shared, 1};
  arena.Return(ObjectSlot(3));
  arena.Return(ObjectSlot(1));
  CHECK(shared.use_count() == 4);
  CHECK(arena.Take() == ObjectSlot(1));
  CHECK(arena.Take() == ObjectSlot(3));
  CHECK(arena[ObjectSlot(1)].shared == nullptr);
  CHECK(arena[ObjectSlot(1)].number == 7);
  CHECK(arena.Take() == ObjectSlot(5));
}

TEST_CASE("objects of a power of two bytes lie on one page each") {
  constexpr size_t kPage = 4096;
  SlotArena<ObjectSlot, Object, 100> arena;
  for (int i = 0; i < 250; ++i) {
    const auto begin = reinterpret_cast<uintptr_t>(&arena[arena.Take()]);
    CHECK(begin / kPage == (begin + sizeof(Object) - 1) / kPage);
  }
}

TEST_CASE("an arena counts the slots that it ever gave") {
  SlotArena<ObjectSlot, Object, 8> arena;
  CHECK(arena.used() == 0);
  for (int i = 0; i < 9; ++i) arena.Take();
  arena.Return(ObjectSlot(4));
  CHECK(arena.used() == 9);
  arena.Take();
  CHECK(arena.used() == 9);
}

}  // namespace
}  // namespace nowcalls::core
