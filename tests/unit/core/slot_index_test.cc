#include "core/tables/slot_index.h"

#include <doctest/doctest.h>

#include "base/keyed_hash.h"

namespace nowcalls::core {
namespace {

TEST_CASE("slots are told apart by both halves of their hashes") {
  SlotIndex<TokenSlot> index;
  const auto any = [](TokenSlot) { return true; };
  const auto find = [&](uint64_t high, uint64_t low) { return index.Find(high << 32 | low, any); };
  index.Insert(uint64_t{1} << 32 | 5, TokenSlot(1));
  index.Insert(uint64_t{2} << 32 | 5, TokenSlot(2));
  index.Insert(uint64_t{1} << 32 | 6, TokenSlot(3));
  CHECK(index.size() == 3);
  CHECK(find(1, 5) == TokenSlot(1));
  CHECK(find(2, 5) == TokenSlot(2));
  CHECK(find(1, 6) == TokenSlot(3));
  CHECK(find(2, 6) == kNoToken);
  index.Erase(uint64_t{1} << 32 | 5, TokenSlot(1));
  CHECK(index.size() == 2);
  CHECK(find(1, 5) == kNoToken);
  CHECK(find(2, 5) == TokenSlot(2));
}

TEST_CASE("room that is reserved spares growing, and moves what is there") {
  constexpr uint32_t kSlots = 40'000;
  SlotIndex<TokenSlot> index;
  for (uint32_t slot = 0; slot < 100; ++slot) index.Insert(MixBits(slot), TokenSlot(slot));
  index.Reserve(kSlots);
  const size_t reserved_bytes = index.MemoryBytes();
  for (uint32_t slot = 100; slot < kSlots; ++slot) {
    index.Prefetch(MixBits(slot));
    index.Insert(MixBits(slot), TokenSlot(slot));
  }
  CHECK(index.size() == kSlots);
  CHECK(index.MemoryBytes() < reserved_bytes * 5 / 4);
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    const TokenSlot wanted(slot);
    const TokenSlot found = index.Find(MixBits(slot), [&](TokenSlot s) { return s == wanted; });
    if (found != wanted) FAIL("slot " << slot);
  }
  index.Reserve(1);
  CHECK(index.MemoryBytes() >= reserved_bytes);
}

}  // namespace
}  // namespace nowcalls::core
