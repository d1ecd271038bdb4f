// KeyTable: values of parameters under their flows, each with its lane.
//
// Thread: loop. A key exists while it has a token or a waiter. Slots are stable and reused. Some
// 105 bytes a key, and text beyond 15 bytes.
#ifndef NOWCALLS_CORE_TABLES_KEY_TABLE_H_
#define NOWCALLS_CORE_TABLES_KEY_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "core/tables/lane.h"
#include "core/tables/slot.h"
#include "core/tables/slot_arena.h"
#include "core/tables/slot_index.h"
#include "core/tables/table_sizes.h"
#include "nowcalls/param.h"

namespace nowcalls::core {

struct Key {
  Lane lane;
  FlowSlot flow_slot;        // kNoFlow: the slot is free.
  uint32_t tokens = 0;       // That hold the value.
  uint32_t rule_number = 0;  // Flow::rule_number that lane.level_count was taken from.
  ParamValue value;
};

class KeyTable {
 public:
  explicit KeyTable(const std::array<uint64_t, 2>& hash_key) : hash_key_(hash_key) {}

  KeySlot Find(FlowSlot flow_slot, const Param& value) const;
  // REQUIRES: it has no key.
  KeySlot Add(FlowSlot flow_slot, const Param& value);
  // REQUIRES: neither tokens nor waiters.
  void Erase(KeySlot slot);

  Key& at(KeySlot slot) { return keys_[slot]; }
  const Key& at(KeySlot slot) const { return keys_[slot]; }
  size_t size() const { return index_.size(); }
  size_t MemoryBytes() const;

  // The key's first waiter may have come, or its last gone.
  void TrackWaiting(KeySlot slot);
  // By slot.
  std::vector<KeySlot> WaitingOf(FlowSlot flow_slot) const;
  // The same, while visit(KeySlot) returns true.
  template <typename Visit>
  void VisitWaitingOf(FlowSlot flow_slot, Visit&& visit) const {
    for (auto it = waiting_.lower_bound({flow_slot, KeySlot(0)});
         it != waiting_.end() && it->first == flow_slot && visit(it->second); ++it) {
    }
  }

  // By a walk over all keys.
  template <typename Visit>
  void ForEachOf(FlowSlot flow_slot, Visit&& visit) const {
    for (uint32_t i = 0; i < keys_.used(); ++i) {
      if (keys_[KeySlot(i)].flow_slot == flow_slot) visit(KeySlot(i));
    }
  }
  // All slots are below.
  uint32_t slots() const { return keys_.used(); }

 private:
  uint64_t HashOf(FlowSlot flow_slot, const Param& value) const;

  const std::array<uint64_t, 2> hash_key_;
  SlotArena<KeySlot, Key, kTableSizes.key_chunk> keys_;
  SlotIndex<KeySlot> index_;
  size_t text_bytes_ = 0;  // Of values that do not fit into their std::string.
  absl::btree_set<std::pair<FlowSlot, KeySlot>> waiting_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TABLES_KEY_TABLE_H_
