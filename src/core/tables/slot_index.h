// SlotIndex: a SlotTable that grows in small steps at any size.
//
// Thread: loop. An insert moves a kShards-th of the entries at most.
#ifndef NOWCALLS_CORE_TABLES_SLOT_INDEX_H_
#define NOWCALLS_CORE_TABLES_SLOT_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tables/slot_table.h"
#include "core/tables/table_sizes.h"

namespace nowcalls::core {

// As SlotTable, with hashes of 64 bits.
template <typename S>
class SlotIndex {
 public:
  static constexpr size_t kShards = kTableSizes.index_shards;

  SlotIndex() : shards_(kShards) {}

  void Insert(uint64_t hash, S slot) {
    ShardOf(hash).Insert(InShard(hash), slot);
    ++size_;
  }
  void Erase(uint64_t hash, S slot) {
    ShardOf(hash).Erase(InShard(hash), slot);
    --size_;
  }
  void Reserve(size_t slots);  // Room for about `slots` in all.

  template <typename Predicate>
  S Find(uint64_t hash, Predicate is_it) const {
    return ShardOf(hash).Find(InShard(hash), is_it);
  }
  void Prefetch(uint64_t hash) const { ShardOf(hash).Prefetch(InShard(hash)); }

  size_t size() const { return size_; }
  size_t MemoryBytes() const;

 private:
  static uint32_t InShard(uint64_t hash) { return static_cast<uint32_t>(hash); }
  static size_t ShardNumber(uint64_t hash) { return (hash >> 32) % kShards; }
  SlotTable<S>& ShardOf(uint64_t hash) { return shards_[ShardNumber(hash)]; }
  const SlotTable<S>& ShardOf(uint64_t hash) const { return shards_[ShardNumber(hash)]; }

  std::vector<SlotTable<S>> shards_;
  size_t size_ = 0;
};

extern template class SlotIndex<KeySlot>;
extern template class SlotIndex<TokenSlot>;

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TABLES_SLOT_INDEX_H_
