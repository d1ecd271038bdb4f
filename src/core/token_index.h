// TokenIndex: from a token id to its slot, in steps that are small at any size.
//
// Thread: loop. Open addressing, split by the id into kShards tables that grow one by one, so that
// no insert ever moves more than a kShards-th of the entries: some twenty thousand of twenty
// million. Ids are evenly distributed, so their bits serve as the hash.
#ifndef NOWCALLS_CORE_TOKEN_INDEX_H_
#define NOWCALLS_CORE_TOKEN_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

using TokenSlot = uint32_t;
inline constexpr TokenSlot kNoToken = UINT32_MAX;

class TokenIndex {
 public:
  static constexpr size_t kShards = 1024;

  TokenIndex() : shards_(kShards) {}

  // REQUIRES: the slot is not in the index.
  void Insert(TokenId id, TokenSlot slot) { ShardOf(id).Insert(HashOf(id), slot); }
  // REQUIRES: it is there.
  void Erase(TokenId id, TokenSlot slot) { ShardOf(id).Erase(HashOf(id), slot); }

  // The first slot under this id that `is_it` accepts; kNoToken if there is none. Other ids may
  // have the same hash, so `is_it` has to look.
  template <typename Predicate>
  TokenSlot Find(TokenId id, Predicate is_it) const {
    const std::vector<Entry>& entries = ShardOf(id).entries;
    if (entries.empty()) return kNoToken;
    const size_t mask = entries.size() - 1;
    const uint32_t hash = HashOf(id);
    for (size_t i = hash & mask; entries[i].slot != kNoToken; i = (i + 1) & mask) {
      if (entries[i].hash == hash && is_it(entries[i].slot)) return entries[i].slot;
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
    std::vector<Entry> entries;  // None, or a power of two.
    size_t used = 0;

    void Insert(uint32_t hash, TokenSlot slot);
    void Erase(uint32_t hash, TokenSlot slot);
    void Place(const Entry& entry);
    void Grow();
  };

  static uint32_t HashOf(TokenId id) { return static_cast<uint32_t>(id.value); }
  static size_t ShardNumber(TokenId id) { return (id.value >> 32) % kShards; }
  Shard& ShardOf(TokenId id) { return shards_[ShardNumber(id)]; }
  const Shard& ShardOf(TokenId id) const { return shards_[ShardNumber(id)]; }

  std::vector<Shard> shards_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TOKEN_INDEX_H_
