// The entries of a memtable, which RocksDB owns.
//
// Thread: any.
#ifndef NOWCALLS_STORE_MEMTABLE_MEMTABLE_ITEMS_H_
#define NOWCALLS_STORE_MEMTABLE_MEMTABLE_ITEMS_H_

#include <cstdint>
#include <vector>

namespace nowcalls::store {

// First 16 bytes of the user key, big-endian, padded with zeros.
struct MemtableItem {
  uint64_t high;
  uint64_t low;
  const char* entry;
};

using MemtableItems = std::vector<MemtableItem>;

MemtableItem MemtableItemOf(const char* entry);

// Removes each put followed by a single delete as its key's next change, and that delete. REQUIRES:
// order of insertion.
void ErasePairs(MemtableItems* items);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_MEMTABLE_MEMTABLE_ITEMS_H_
