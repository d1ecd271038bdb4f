// SlotIndex: from the hash of a key to the slot of a token, in steps that are small at any size.
//
// Thread: loop. Open addressing, split by the hash into kShards tables that grow one by one, so
// that no insert ever moves more than a kShards-th of the entries: some twenty thousand of twenty
// million. An entry is 8 bytes and does not have the key. Hashes must be evenly distributed,
// whatever keys a peer may choose.
#ifndef NOWCALLS_CORE_SLOT_INDEX_H_
#define NOWCALLS_CORE_SLOT_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/populated_memory.h"
#include "base/prefetch.h"
#include "core/table_sizes.h"

namespace nowcalls::core {

using TokenSlot = uint32_t;
inline constexpr TokenSlot kNoToken = UINT32_MAX;

class SlotIndex {
 public:
  static constexpr size_t kShards = kTableSizes.index_shards;

  SlotIndex() : shards_(kShards) {}

  // REQUIRES: the slot is not in the index.
  void Insert(uint64_t hash, TokenSlot slot) { ShardOf(hash).Insert(InShard(hash), slot); }
  // Room for about `slots` in all, so that inserting them moves hardly any.
  void Reserve(size_t slots);
  // Begins to load what Insert or Find will touch first.
  void Prefetch(uint64_t hash) const {
    const Shard& shard = ShardOf(hash);
    if (!shard.entries.empty()) PrefetchForWriting(&shard.entries[shard.Home(InShard(hash))]);
  }
  // REQUIRES: it is there, with this hash.
  void Erase(uint64_t hash, TokenSlot slot) { ShardOf(hash).Erase(InShard(hash), slot); }

  // The first slot under this hash that `is_it` accepts; kNoToken if there is none. Other keys may
  // have the same hash, so `is_it` has to look.
  template <typename Predicate>
  TokenSlot Find(uint64_t hash, Predicate is_it) const {
    const Shard& shard = ShardOf(hash);
    const PopulatedVector<Entry>& entries = shard.entries;
    if (entries.empty()) return kNoToken;
    const uint32_t in_shard = InShard(hash);
    for (size_t i = shard.Home(in_shard); entries[i].slot != kNoToken; i = shard.Next(i)) {
      if (entries[i].hash == in_shard && is_it(entries[i].slot)) return entries[i].slot;
    }
    return kNoToken;
  }

  size_t MemoryBytes() const;

 private:
  struct Entry {
    uint32_t hash = 0;
    TokenSlot slot = kNoToken;
  };
  struct Shard {
    PopulatedVector<Entry> entries;  // More than are used.
    size_t used = 0;

    // Where the probe for a hash begins, and how it goes on. REQUIRES: there are entries.
    size_t Home(uint32_t hash) const { return uint64_t{hash} * entries.size() >> 32; }
    size_t Next(size_t i) const { return i + 1 == entries.size() ? 0 : i + 1; }
    // How often Next leads from one place to the other.
    size_t Steps(size_t from, size_t to) const {
      return to >= from ? to - from : to + entries.size() - from;
    }
    void Insert(uint32_t hash, TokenSlot slot);
    void Erase(uint32_t hash, TokenSlot slot);
    void Place(const Entry& entry);
    void Grow();
    void Resize(size_t size);
  };

  static uint32_t InShard(uint64_t hash) { return static_cast<uint32_t>(hash); }
  static size_t ShardNumber(uint64_t hash) { return (hash >> 32) % kShards; }
  Shard& ShardOf(uint64_t hash) { return shards_[ShardNumber(hash)]; }
  const Shard& ShardOf(uint64_t hash) const { return shards_[ShardNumber(hash)]; }

  std::vector<Shard> shards_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_SLOT_INDEX_H_
