#include "core/slot_index.h"

namespace nowcalls::core {

void SlotIndex::Reserve(size_t slots) {
  for (SlotTable<TokenSlot>& shard : shards_) shard.Reserve(slots / kShards);
}

size_t SlotIndex::MemoryBytes() const {
  size_t bytes = shards_.capacity() * sizeof(SlotTable<TokenSlot>);
  for (const SlotTable<TokenSlot>& shard : shards_) bytes += shard.MemoryBytes();
  return bytes;
}

}  // namespace nowcalls::core
