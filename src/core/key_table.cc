#include "core/key_table.h"

#include <algorithm>

#include "base/allocated.h"
#include "base/check.h"
#include "base/keyed_hash.h"

namespace nowcalls::core {
namespace {

// Where a key stands in a listing: the highest nowCalls come first, of equal ones the lowest slot.
// As one number, so that it is its own cursor. Beyond 2^32-1 nowCalls count as equal.
uint64_t PlaceOf(const Key& key, KeySlot slot) {
  const auto now_calls = static_cast<uint64_t>(std::min<int64_t>(key.lane.now_calls, UINT32_MAX));
  return (UINT32_MAX - now_calls) << 32 | (uint64_t{slot.value} + 1);
}

}  // namespace

uint64_t KeyTable::HashOf(FlowSlot flow_slot, const Param& value) const {
  const uint64_t kind = uint64_t{flow_slot.value} << 8 | static_cast<uint8_t>(value.type);
  return KeyedHash(hash_key_, value.bytes) ^ MixBits(kind ^ hash_key_[0]);
}

KeySlot KeyTable::Find(FlowSlot flow_slot, const Param& value) const {
  return index_.Find(HashOf(flow_slot, value), [&](KeySlot slot) {
    return at(slot).flow_slot == flow_slot && at(slot).value.view() == value;
  });
}

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
  return keys_.used() * sizeof(Key) + index_.MemoryBytes() + text_bytes_;
}

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
  for (auto it = waiting_.lower_bound({flow_slot, KeySlot(0)});
       it != waiting_.end() && it->first == flow_slot; ++it) {
    keys.push_back(it->second);
  }
  return keys;
}

KeyPage KeyTable::Page(FlowSlot flow_slot, uint32_t limit, uint64_t cursor) const {
  // A heap of the first places behind the cursor, one more than the page has rows.
  std::vector<uint64_t> places;
  for (uint32_t i = 0; i < keys_.used(); ++i) {
    const KeySlot slot(i);
    if (at(slot).flow_slot != flow_slot) continue;
    const uint64_t place = PlaceOf(at(slot), slot);
    if (place <= cursor) continue;
    if (places.size() > limit) {
      if (place > places.front()) continue;
      std::pop_heap(places.begin(), places.end());
      places.pop_back();
    }
    places.push_back(place);
    std::push_heap(places.begin(), places.end());
  }
  std::sort_heap(places.begin(), places.end());
  KeyPage page;
  const bool more = places.size() > limit;
  if (more) places.pop_back();
  for (const uint64_t place : places) {
    page.keys.emplace_back(static_cast<uint32_t>(place) - 1);
  }
  if (more) page.next_cursor = places.back();
  return page;
}

}  // namespace nowcalls::core
