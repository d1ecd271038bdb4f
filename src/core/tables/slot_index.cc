#include "core/tables/slot_index.h"

namespace nowcalls::core {

template <typename S>
void SlotIndex<S>::Reserve(size_t slots) {
  // An even share each: hashes spread only about evenly, so a shard or two may still grow.
  for (SlotTable<S>& shard : shards_) shard.Reserve(slots / kShards);
}

template <typename S>
size_t SlotIndex<S>::MemoryBytes() const {
  size_t bytes = shards_.capacity() * sizeof(SlotTable<S>);
  for (const SlotTable<S>& shard : shards_) bytes += shard.MemoryBytes();
  return bytes;
}

template class SlotIndex<KeySlot>;
template class SlotIndex<TokenSlot>;

}  // namespace nowcalls::core
