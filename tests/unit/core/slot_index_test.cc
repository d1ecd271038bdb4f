#include "core/slot_index.h"

#include <doctest/doctest.h>

#include "base/keyed_hash.h"

namespace nowcalls::core {
namespace {

TEST_CASE("slots are told apart by both halves of their hashes") {
  SlotIndex index;
  const auto any = [](Slot) { return true; };
  const auto find = [&](uint64_t high, uint64_t low) { return index.Find(high << 32 | low, any); };
  index.Insert(uint64_t{1} << 32 | 5, 1);
  index.Insert(uint64_t{2} << 32 | 5, 2);
  index.Insert(uint64_t{1} << 32 | 6, 3);
  CHECK(index.size() == 3);
  CHECK(find(1, 5) == 1);
  CHECK(find(2, 5) == 2);
  CHECK(find(1, 6) == 3);
  CHECK(find(2, 6) == kNoSlot);
  index.Erase(uint64_t{1} << 32 | 5, 1);
  CHECK(index.size() == 2);
  CHECK(find(1, 5) == kNoSlot);
  CHECK(find(2, 5) == 2);
}

TEST_CASE("room that is reserved spares growing, and moves what is there") {
  constexpr Slot kSlots = 40'000;
  SlotIndex index;
  for (Slot slot = 0; slot < 100; ++slot) index.Insert(MixBits(slot), slot);
  index.Reserve(kSlots);
  const size_t reserved_bytes = index.MemoryBytes();
  for (Slot slot = 100; slot < kSlots; ++slot) {
    index.Prefetch(MixBits(slot));
    index.Insert(MixBits(slot), slot);
  }
  CHECK(index.size() == kSlots);
  CHECK(index.MemoryBytes() < reserved_bytes * 5 / 4);
  for (Slot slot = 0; slot < kSlots; ++slot) {
    const Slot found = index.Find(MixBits(slot), [&](Slot s) { return s == slot; });
    if (found != slot) FAIL("slot " << slot);
  }
  index.Reserve(1);
  CHECK(index.MemoryBytes() >= reserved_bytes);
}

}  // namespace
}  // namespace nowcalls::core
