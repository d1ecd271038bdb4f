// The entries of a memtable, as its sort and its flush see them.
//
// An entry is what RocksDB stores in a memtable: the length of the internal key, the internal key
// (user key, sequence and type), the length of the value, the value. It belongs to RocksDB, and is
// read only up to the internal key.
//
// Thread: any.
#ifndef NOWCALLS_STORE_MEMTABLE_MEMTABLE_ITEMS_H_
#define NOWCALLS_STORE_MEMTABLE_MEMTABLE_ITEMS_H_

#include <cstdint>
#include <vector>

namespace nowcalls::store {

// The first 16 bytes of the user key as big-endian integers, with zeros behind a shorter one.
struct MemtableItem {
  uint64_t high;
  uint64_t low;
  const char* entry;
};

using MemtableItems = std::vector<MemtableItem>;

MemtableItem MemtableItemOf(const char* entry);

// Removes each put whose key's next change is a single delete, together with that.
// REQUIRES: `items` are in order of insertion.
void ErasePairs(MemtableItems* items);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_MEMTABLE_MEMTABLE_ITEMS_H_
