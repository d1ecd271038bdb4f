#include "core/tables/slot_table.h"

#include <doctest/doctest.h>

#include <map>

#include "base/keyed_hash.h"
#include "base/prng.h"

namespace nowcalls::core {
namespace {

// Few home places make long probe sequences, so that an erase must move entries back over the end
// of the table too.
void CompareWithMap(uint64_t seed, uint32_t homes, uint32_t homes_from) {
  Prng prng(seed);
  SlotTable<TokenSlot> table;
  std::map<uint32_t, uint32_t> model;  // The hash of each slot.
  const auto hash_of = [&](uint32_t slot) {
    return homes == 0 ? static_cast<uint32_t>(MixBits(slot)) : homes_from + slot % homes;
  };
  uint32_t next = 0;
  for (int step = 0; step < 6000; ++step) {
    if (model.size() < 10 || (model.size() < 700 && prng.Below(2) == 0)) {
      const uint32_t slot = next++;
      table.Insert(hash_of(slot), TokenSlot(slot));
      model[slot] = hash_of(slot);
    } else {
      auto it = model.lower_bound(static_cast<uint32_t>(prng.Below(next)));
      if (it == model.end()) it = model.begin();
      table.Erase(it->second, TokenSlot(it->first));
      model.erase(it);
    }
    if (step % 50 != 0) continue;
    CHECK(table.size() == model.size());
    for (uint32_t slot = 0; slot <= next; ++slot) {
      const TokenSlot wanted(slot);
      const TokenSlot expected = model.contains(slot) ? wanted : kNoToken;
      const TokenSlot found = table.Find(hash_of(slot), [&](TokenSlot s) { return s == wanted; });
      if (found != expected) FAIL("slot " << slot);
    }
  }
}

TEST_CASE("slots are found under their hashes, whatever comes and goes") {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    CAPTURE(seed);
    CompareWithMap(seed, /*homes=*/0, 0);
  }
}

TEST_CASE("slots that share home places are all found after any erase") {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    CAPTURE(seed);
    CompareWithMap(seed, /*homes=*/5, 0);
    // The highest hashes are at home in the last place of a table of any size.
    CompareWithMap(seed, /*homes=*/11, UINT32_MAX - 11);
  }
}

TEST_CASE("slots under the same hash are told apart by whoever looks") {
  SlotTable<TokenSlot> table;
  table.Insert(7, TokenSlot(1));
  table.Insert(7, TokenSlot(2));
  CHECK(table.Find(7, [](TokenSlot slot) { return slot == TokenSlot(2); }) == TokenSlot(2));
  CHECK(table.Find(7, [](TokenSlot slot) { return slot == TokenSlot(3); }) == kNoToken);
  table.Erase(7, TokenSlot(1));
  CHECK(table.Find(7, [](TokenSlot slot) { return slot == TokenSlot(1); }) == kNoToken);
  CHECK(table.Find(7, [](TokenSlot slot) { return slot == TokenSlot(2); }) == TokenSlot(2));
}

TEST_CASE("a table that has become sparse gives memory back, and finds what is left") {
  SlotTable<TokenSlot> table;
  const auto hash_of = [](uint32_t slot) { return static_cast<uint32_t>(MixBits(slot)); };
  for (uint32_t slot = 0; slot < 10'000; ++slot) table.Insert(hash_of(slot), TokenSlot(slot));
  const size_t full_bytes = table.MemoryBytes();
  table.ShrinkIfSparse();
  CHECK(table.MemoryBytes() == full_bytes);
  for (uint32_t slot = 9'999; slot >= 10; --slot) {
    table.Erase(hash_of(slot), TokenSlot(slot));
    table.ShrinkIfSparse();
  }
  CHECK(table.MemoryBytes() < full_bytes / 50);
  for (uint32_t slot = 0; slot < 10; ++slot) {
    CHECK(table.Find(hash_of(slot), [&](TokenSlot s) { return s == TokenSlot(slot); }) ==
          TokenSlot(slot));
  }
}

TEST_CASE("room that is reserved in a table spares growing, and moves what is there") {
  constexpr uint32_t kSlots = 10'000;
  SlotTable<TokenSlot> table;
  const auto hash_of = [](uint32_t slot) { return static_cast<uint32_t>(MixBits(slot)); };
  table.Reserve(0);
  CHECK(table.MemoryBytes() == 0);
  for (uint32_t slot = 0; slot < 100; ++slot) table.Insert(hash_of(slot), TokenSlot(slot));
  table.Reserve(kSlots);
  const size_t reserved_bytes = table.MemoryBytes();
  for (uint32_t slot = 100; slot < kSlots; ++slot) {
    table.Prefetch(hash_of(slot));
    table.Insert(hash_of(slot), TokenSlot(slot));
  }
  CHECK(table.MemoryBytes() == reserved_bytes);
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    const TokenSlot wanted(slot);
    const TokenSlot found = table.Find(hash_of(slot), [&](TokenSlot s) { return s == wanted; });
    if (found != wanted) FAIL("slot " << slot);
  }
  table.Reserve(1);
  CHECK(table.MemoryBytes() == reserved_bytes);
}

}  // namespace
}  // namespace nowcalls::core
