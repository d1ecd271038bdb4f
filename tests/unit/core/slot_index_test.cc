#include "core/slot_index.h"

#include <doctest/doctest.h>

#include <map>

#include "base/keyed_hash.h"
#include "base/prng.h"

namespace nowcalls::core {
namespace {

// All in one shard. Few home buckets make long probe sequences, so that an erase must move entries
// back over the end of the shard too.
void CompareWithMap(uint64_t seed, uint64_t homes, uint64_t homes_from) {
  Prng prng(seed);
  SlotIndex index;
  std::map<TokenSlot, uint64_t> model;  // The hash of each slot.
  const auto hash_of = [&](TokenSlot slot) {
    const uint64_t high = slot * SlotIndex::kShards;
    return (high << 32) | ((homes_from + slot % homes) & 0xffffffff);
  };
  TokenSlot next = 0;
  for (int step = 0; step < 6000; ++step) {
    if (model.size() < 10 || (model.size() < 700 && prng.Below(2) == 0)) {
      const TokenSlot slot = next++;
      index.Insert(hash_of(slot), slot);
      model[slot] = hash_of(slot);
    } else {
      auto it = model.lower_bound(static_cast<TokenSlot>(prng.Below(next)));
      if (it == model.end()) it = model.begin();
      index.Erase(it->second, it->first);
      model.erase(it);
    }
    if (step % 50 != 0) continue;
    for (TokenSlot slot = 0; slot <= next; ++slot) {
      const TokenSlot expected = model.contains(slot) ? slot : kNoToken;
      const TokenSlot found = index.Find(hash_of(slot), [&](TokenSlot s) { return s == slot; });
      if (found != expected) FAIL("slot " << slot);
    }
  }
}

TEST_CASE("slots are found under their hashes, whatever comes and goes") {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    CAPTURE(seed);
    CompareWithMap(seed, /*homes=*/UINT32_MAX, 0);
  }
}

TEST_CASE("slots that share home buckets are all found after any erase") {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    CAPTURE(seed);
    CompareWithMap(seed, /*homes=*/5, 0);
    // 1020 .. 1030 wrap around the end of a shard of 1024 buckets.
    CompareWithMap(seed, /*homes=*/11, 1020);
  }
}

TEST_CASE("slots under the same hash are told apart by whoever looks") {
  SlotIndex index;
  index.Insert(7, 1);
  index.Insert(7, 2);
  CHECK(index.Find(7, [](TokenSlot slot) { return slot == 2; }) == 2);
  CHECK(index.Find(7, [](TokenSlot slot) { return slot == 3; }) == kNoToken);
  index.Erase(7, 1);
  CHECK(index.Find(7, [](TokenSlot slot) { return slot == 1; }) == kNoToken);
  CHECK(index.Find(7, [](TokenSlot slot) { return slot == 2; }) == 2);
}

TEST_CASE("room that is reserved spares growing, and moves what is there") {
  constexpr TokenSlot kSlots = 40'000;
  SlotIndex index;
  for (TokenSlot slot = 0; slot < 100; ++slot) index.Insert(MixBits(slot), slot);
  index.Reserve(kSlots);
  const size_t reserved_bytes = index.MemoryBytes();
  for (TokenSlot slot = 100; slot < kSlots; ++slot) {
    index.Prefetch(MixBits(slot));
    index.Insert(MixBits(slot), slot);
  }
  CHECK(index.MemoryBytes() < reserved_bytes * 5 / 4);
  for (TokenSlot slot = 0; slot < kSlots; ++slot) {
    const TokenSlot found = index.Find(MixBits(slot), [&](TokenSlot s) { return s == slot; });
    if (found != slot) FAIL("slot " << slot);
  }
  index.Reserve(1);
  CHECK(index.MemoryBytes() >= reserved_bytes);
}

}  // namespace
}  // namespace nowcalls::core
