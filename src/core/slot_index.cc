#include "core/slot_index.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace nowcalls::core {
namespace {

constexpr size_t kEntriesMin = 8;

// A shard grows when more than 3/4 of it is used.
bool IsFull(size_t used, size_t entries) { return used * 4 > entries * 3; }

}  // namespace

void SlotIndex::Shard::Insert(uint32_t hash, TokenSlot slot) {
  if (IsFull(used + 1, entries.size())) Grow();
  Place({hash, slot});
  ++used;
}

void SlotIndex::Shard::Place(const Entry& entry) {
  const size_t mask = entries.size() - 1;
  size_t i = entry.hash & mask;
  while (entries[i].slot != kNoToken) i = (i + 1) & mask;
  entries[i] = entry;
}

// Linear probing without tombstones: entries behind the hole move back when their probe passed it
// (Knuth, TAOCP 6.4, algorithm R).
void SlotIndex::Shard::Erase(uint32_t hash, TokenSlot slot) {
  NOWCALLS_CHECK(used > 0);
  const size_t mask = entries.size() - 1;
  size_t hole = hash & mask;
  while (entries[hole].slot != slot) {
    NOWCALLS_CHECK(entries[hole].slot != kNoToken);
    hole = (hole + 1) & mask;
  }
  for (size_t i = (hole + 1) & mask; entries[i].slot != kNoToken; i = (i + 1) & mask) {
    const size_t home = entries[i].hash & mask;
    if (((i - home) & mask) < ((i - hole) & mask)) continue;
    entries[hole] = entries[i];
    hole = i;
  }
  entries[hole] = Entry{};
  --used;
}

void SlotIndex::Shard::Grow() { Resize(std::max(kEntriesMin, entries.size() * 2)); }

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
  size_t size = std::bit_ceil(in_shard);
  if (IsFull(in_shard, size)) size *= 2;
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
