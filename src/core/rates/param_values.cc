#include "core/rates/param_values.h"

#include <algorithm>
#include <cstddef>

#include "base/allocated.h"
#include "base/keyed_hash.h"

namespace nowcalls::core {

uint32_t ParamValues::HashOf(const Param& value) const {
  const auto type = static_cast<uint64_t>(value.type);
  return static_cast<uint32_t>(KeyedHash({hash_key_[0] ^ type, hash_key_[1]}, value.bytes));
}

size_t ParamValues::BytesOf(const ValueRate& value) {
  // An entry of 8 bytes in a table that is between half and 3/4 full.
  constexpr size_t kIndexBytes = 12;
  size_t bytes = sizeof(ValueRate) + kIndexBytes + AllocatedBytes(value.value.bytes);
  if (const auto* window = std::get_if<SlidingWindow>(&value.pace)) {
    bytes += WindowBytes(window->buckets());
  }
  return bytes;
}

ValueSlot ParamValues::Find(const FlowValues& values, const Param& value) const {
  return values.index.Find(HashOf(value),
                           [&](ValueSlot slot) { return at(slot).value.view() == value; });
}

ValueSlot ParamValues::Use(FlowValues* values, const Param& value) {
  ValueSlot slot = Find(*values, value);
  if (slot != kNoValue) {
    // The same value again: its place is already the first in both orders.
    if (values->list.newest == slot && all_.newest == slot) return slot;
    Unlink(&values->list, ValueOrder::kFlow, slot);
    Unlink(&all_, ValueOrder::kAll, slot);
  } else {
    slot = values_.Take();
    ValueRate& entry = at(slot);
    entry.value = ParamValue(value);
    entry.owner = values;
    entry.hash = HashOf(value);
    values->index.Insert(entry.hash, slot);
    bytes_ += BytesOf(entry);
  }
  Link(&values->list, ValueOrder::kFlow, slot);
  Link(&all_, ValueOrder::kAll, slot);
  return slot;
}

// A value that was idle for long is as good as new, so dropping it loses nothing. It stays a minute
// to be shown, if there is room.
void ParamValues::Trim(FlowValues* values, size_t values_max, int64_t now_ms) {
  // Hard bounds first: they cost exactness, which Forget counts.
  while (values->list.size > values_max) Forget(values->list.oldest, now_ms);
  while (bytes_ > bytes_max_) Forget(all_.oldest, now_ms);
  // A request adds one value as a rule, so two drops keep up. Where memory is short, a value that
  // is only shown is dropped before one whose limit is in use.
  const bool short_of_memory = bytes_ > bytes_max_ / 2;
  for (int i = 0; i < 2 && values->list.oldest != kNoValue; ++i) {
    const ValueRate& oldest = at(values->list.oldest);
    if ((short_of_memory ? oldest.busy_ms : oldest.idle_ms) > now_ms) return;
    Drop(values->list.oldest);
  }
}

void ParamValues::Clear(FlowValues* values) {
  while (values->list.oldest != kNoValue) Drop(values->list.oldest);
}

// Drops the value for want of room. If it is busy, its limit begins anew.
void ParamValues::Forget(ValueSlot slot, int64_t now_ms) {
  if (at(slot).busy_ms > now_ms) {
    ++at(slot).owner->forgotten;
    ++forgotten_;
  }
  Drop(slot);
}

void ParamValues::Drop(ValueSlot slot) {
  ValueRate& entry = at(slot);
  bytes_ -= BytesOf(entry);
  // The owner must be left before the slot is returned, which clears it.
  entry.owner->index.Erase(entry.hash, slot);
  entry.owner->index.ShrinkIfSparse();
  Unlink(&entry.owner->list, ValueOrder::kFlow, slot);
  Unlink(&all_, ValueOrder::kAll, slot);
  values_.Return(slot);
}

void ParamValues::Link(ValueList* list, ValueOrder order, ValueSlot slot) {
  LinkOf(slot, order) = {.newer = kNoValue, .older = list->newest};
  if (list->newest == kNoValue) {
    list->oldest = slot;
  } else {
    LinkOf(list->newest, order).newer = slot;
  }
  list->newest = slot;
  ++list->size;
}

void ParamValues::Unlink(ValueList* list, ValueOrder order, ValueSlot slot) {
  const ValueLink link = LinkOf(slot, order);
  if (link.newer == kNoValue) {
    list->newest = link.older;
  } else {
    LinkOf(link.newer, order).older = link.older;
  }
  if (link.older == kNoValue) {
    list->oldest = link.newer;
  } else {
    LinkOf(link.older, order).newer = link.newer;
  }
  --list->size;
}

}  // namespace nowcalls::core
