// SlotTable: from the hash of a key to the slot of the object with that key.
//
// Thread: loop. 8 bytes an entry, without the key. Grows at 3/4 full; shrinks only when told.
// Hashes must be evenly distributed, whatever keys a peer chooses.
#ifndef NOWCALLS_CORE_TABLES_SLOT_TABLE_H_
#define NOWCALLS_CORE_TABLES_SLOT_TABLE_H_

#include <cstddef>
#include <cstdint>

#include "base/populated_memory.h"
#include "base/prefetch.h"
#include "core/tables/slot.h"

namespace nowcalls::core {

template <typename S>
class SlotTable {
 public:
  // REQUIRES: the slot is not in the table. May move all entries.
  void Insert(uint32_t hash, S slot);
  void Erase(uint32_t hash, S slot);  // REQUIRES: in the table, with this hash.
  // For `slots` in all.
  void Reserve(size_t slots);

  void ShrinkIfSparse();  // Only if less than 1/8 is used.

  // S(): none. Other keys may have the hash: `is_it` compares.
  template <typename Predicate>
  S Find(uint32_t hash, Predicate is_it) const {
    if (entries_.empty()) return S();
    for (size_t i = Home(hash); entries_[i].slot != S(); i = Next(i)) {
      if (entries_[i].hash == hash && is_it(entries_[i].slot)) return entries_[i].slot;
    }
    return S();
  }

  void Prefetch(uint32_t hash) const {
    if (!entries_.empty()) PrefetchForReading(&entries_[Home(hash)]);
  }

  size_t size() const { return used_; }
  size_t MemoryBytes() const { return entries_.capacity() * sizeof(Entry); }

 private:
  struct Entry {
    uint32_t hash = 0;
    S slot;
  };

  // REQUIRES: entries.
  size_t Home(uint32_t hash) const { return uint64_t{hash} * entries_.size() >> 32; }
  size_t Next(size_t i) const { return i + 1 == entries_.size() ? 0 : i + 1; }
  size_t Steps(size_t from, size_t to) const {  // Steps of Next between the places.
    return to >= from ? to - from : to + entries_.size() - from;
  }
  void Place(const Entry& entry);
  void Resize(size_t size);

  PopulatedVector<Entry> entries_;  // More than are used.
  size_t used_ = 0;
};

extern template class SlotTable<FlowSlot>;
extern template class SlotTable<KeySlot>;
extern template class SlotTable<TokenSlot>;
extern template class SlotTable<ValueSlot>;

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TABLES_SLOT_TABLE_H_
