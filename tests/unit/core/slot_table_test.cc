#include "core/slot_table.h"

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
  SlotTable table;
  std::map<Slot, uint32_t> model;  // The hash of each slot.
  const auto hash_of = [&](Slot slot) {
    return homes == 0 ? static_cast<uint32_t>(MixBits(slot)) : homes_from + slot % homes;
  };
  Slot next = 0;
  for (int step = 0; step < 6000; ++step) {
    if (model.size() < 10 || (model.size() < 700 && prng.Below(2) == 0)) {
      const Slot slot = next++;
      table.Insert(hash_of(slot), slot);
      model[slot] = hash_of(slot);
    } else {
      auto it = model.lower_bound(static_cast<Slot>(prng.Below(next)));
      if (it == model.end()) it = model.begin();
      table.Erase(it->second, it->first);
      model.erase(it);
    }
    if (step % 50 != 0) continue;
    CHECK(table.size() == model.size());
    for (Slot slot = 0; slot <= next; ++slot) {
      const Slot expected = model.contains(slot) ? slot : kNoSlot;
      const Slot found = table.Find(hash_of(slot), [&](Slot s) { return s == slot; });
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
  SlotTable table;
  table.Insert(7, 1);
  table.Insert(7, 2);
  CHECK(table.Find(7, [](Slot slot) { return slot == 2; }) == 2);
  CHECK(table.Find(7, [](Slot slot) { return slot == 3; }) == kNoSlot);
  table.Erase(7, 1);
  CHECK(table.Find(7, [](Slot slot) { return slot == 1; }) == kNoSlot);
  CHECK(table.Find(7, [](Slot slot) { return slot == 2; }) == 2);
}

TEST_CASE("room that is reserved in a table spares growing, and moves what is there") {
  constexpr Slot kSlots = 10'000;
  SlotTable table;
  const auto hash_of = [](Slot slot) { return static_cast<uint32_t>(MixBits(slot)); };
  table.Reserve(0);
  CHECK(table.MemoryBytes() == 0);
  for (Slot slot = 0; slot < 100; ++slot) table.Insert(hash_of(slot), slot);
  table.Reserve(kSlots);
  const size_t reserved_bytes = table.MemoryBytes();
  for (Slot slot = 100; slot < kSlots; ++slot) {
    table.Prefetch(hash_of(slot));
    table.Insert(hash_of(slot), slot);
  }
  CHECK(table.MemoryBytes() == reserved_bytes);
  for (Slot slot = 0; slot < kSlots; ++slot) {
    const Slot found = table.Find(hash_of(slot), [&](Slot s) { return s == slot; });
    if (found != slot) FAIL("slot " << slot);
  }
  table.Reserve(1);
  CHECK(table.MemoryBytes() == reserved_bytes);
}

}  // namespace
}  // namespace nowcalls::core
