#include "core/slot_index.h"

#include <bit>

#include "base/check.h"

namespace nowcalls::core {
namespace {

constexpr size_t kEntriesMin = 8;

// A shard grows when more than 3/4 of it is used.
bool IsFull(size_t used, size_t entries) { return used * 4 > entries * 3; }

// 8, 12, 16, 24, 32 and so on: of doubled ones up to 5/8 would be empty, of these half.
size_t NextSize(size_t entries) {
  if (entries < kEntriesMin) return kEntriesMin;
  return std::has_single_bit(entries) ? entries / 2 * 3 : entries / 3 * 4;
}

}  // namespace

void SlotIndex::Shard::Insert(uint32_t hash, TokenSlot slot) {
  if (IsFull(used + 1, entries.size())) Grow();
  Place({hash, slot});
  ++used;
}

void SlotIndex::Shard::Place(const Entry& entry) {
  size_t i = Home(entry.hash);
  while (entries[i].slot != kNoToken) i = Next(i);
  entries[i] = entry;
}

// Linear probing without tombstones: entries behind the hole move back when their probe passed it
// (Knuth, TAOCP 6.4, algorithm R).
void SlotIndex::Shard::Erase(uint32_t hash, TokenSlot slot) {
  NOWCALLS_CHECK(used > 0);
  size_t hole = Home(hash);
  while (entries[hole].slot != slot) {
    NOWCALLS_CHECK(entries[hole].slot != kNoToken);
    hole = Next(hole);
  }
  for (size_t i = Next(hole); entries[i].slot != kNoToken; i = Next(i)) {
    if (Steps(Home(entries[i].hash), i) < Steps(hole, i)) continue;
    entries[hole] = entries[i];
    hole = i;
  }
  entries[hole] = Entry{};
  --used;
}

void SlotIndex::Shard::Grow() { Resize(NextSize(entries.size())); }

void SlotIndex::Shard::Resize(size_t size) {
  PopulatedVector<Entry> old(size);
  old.swap(entries);
  for (const Entry& entry : old) {
    if (entry.slot != kNoToken) Place(entry);
  }
}

void SlotIndex::Reserve(size_t slots) {
  const size_t in_shard = slots / kShards;
  if (in_shard == 0) return;
  size_t size = kEntriesMin;
  while (IsFull(in_shard, size)) size = NextSize(size);
  for (Shard& shard : shards_) {
    if (shard.entries.size() < size) shard.Resize(size);
  }
}

size_t SlotIndex::MemoryBytes() const {
  size_t bytes = shards_.capacity() * sizeof(Shard);
  for (const Shard& shard : shards_) bytes += shard.entries.capacity() * sizeof(Entry);
  return bytes;
}

}  // namespace nowcalls::core
