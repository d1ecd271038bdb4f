#include "core/tables/key_table.h"

#include "base/allocated.h"
#include "base/check.h"
#include "base/keyed_hash.h"

namespace nowcalls::core {

// Flow and type are hashed apart from the bytes, so equal texts of two flows have different places.
uint64_t KeyTable::HashOf(FlowSlot flow_slot, const Param& value) const {
  const uint64_t kind = uint64_t{flow_slot.value} << 8 | static_cast<uint8_t>(value.type);
  return KeyedHash(hash_key_, value.bytes) ^ MixBits(kind ^ hash_key_[0]);
}

KeySlot KeyTable::Find(FlowSlot flow_slot, const Param& value) const {
  return index_.Find(HashOf(flow_slot, value), [&](KeySlot slot) {
    return at(slot).flow_slot == flow_slot && at(slot).value.view() == value;
  });
}

// The caller counts the key in its flow (FlowTable::FindOrAddKey).
KeySlot KeyTable::Add(FlowSlot flow_slot, const Param& value) {
  const KeySlot slot = keys_.Take();
  Key& key = keys_[slot];
  key.flow_slot = flow_slot;
  key.value = ParamValue(value);
  text_bytes_ += AllocatedBytes(key.value.bytes);
  index_.Insert(HashOf(flow_slot, value), slot);
  return slot;
}

void KeyTable::Erase(KeySlot slot) {
  const Key& key = keys_[slot];
  NOWCALLS_CHECK(key.tokens == 0 && key.lane.now_calls == 0 && key.lane.waiting() == 0);
  text_bytes_ -= AllocatedBytes(key.value.bytes);
  index_.Erase(HashOf(key.flow_slot, key.value.view()), slot);
  keys_.Return(slot);
}

size_t KeyTable::MemoryBytes() const {
  return keys_.used() * sizeof(Key) + index_.MemoryBytes() + text_bytes_ +
         waiting_.size() * sizeof(std::pair<FlowSlot, KeySlot>);
}

// Ordered by flow, so a removed rule finds its waiters without a walk over all keys.
void KeyTable::TrackWaiting(KeySlot slot) {
  const Key& key = keys_[slot];
  if (key.lane.waiting() > 0) {
    waiting_.emplace(key.flow_slot, slot);
  } else {
    waiting_.erase({key.flow_slot, slot});
  }
}

std::vector<KeySlot> KeyTable::WaitingOf(FlowSlot flow_slot) const {
  std::vector<KeySlot> keys;
  VisitWaitingOf(flow_slot, [&](KeySlot slot) {
    keys.push_back(slot);
    return true;
  });
  return keys;
}

}  // namespace nowcalls::core
