#include "store/memtable/memtable_items.h"

#include <rocksdb/memtablerep.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"

namespace nowcalls::store {
namespace {

using rocksdb::Slice;

// An entry: length of internal key | user key, sequence, type | length of value | value. Read up to
// the internal key only.
//
// An internal key ends with 8 bytes: sequence << 8 | type, little-endian. Types occur in data
// files, too, and never change.
constexpr size_t kTrailerBytes = 8;
constexpr char kTypeValue = 0x1;
constexpr char kTypeSingleDeletion = 0x7;

Slice UserKeyOf(const char* entry) {
  const Slice key = rocksdb::GetLengthPrefixedSlice(entry);
  NOWCALLS_CHECK(key.size() >= kTrailerBytes);
  return {key.data(), key.size() - kTrailerBytes};
}

char TypeBehind(const Slice& user_key) { return user_key.data()[user_key.size()]; }

class PairEraser {
 public:
  explicit PairEraser(MemtableItems* items)
      : items_(*items), erased_(items->size()), slots_(std::bit_ceil(items->size() * 2 + 1)) {
    NOWCALLS_CHECK(items->size() < UINT32_MAX);
  }

  // Hashes keys to their last change: one pass finds each pair. A put that follows a pair starts
  // anew.
  void Erase() {
    for (size_t i = 0; i < items_.size(); ++i) Look(static_cast<uint32_t>(i));
    size_t kept = 0;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (!erased_[i]) items_[kept++] = items_[i];
    }
    // RocksDB's own check for lost entries is off, since it would miss the pairs.
    NOWCALLS_CHECK(kept + 2 * pairs_ == items_.size());
    items_.resize(kept);
  }

 private:
  void Look(uint32_t index) {
    const Slice key = UserKeyOf(items_[index].entry);
    const uint32_t before = std::exchange(*SlotOf(items_[index], key), index + 1);
    if (before == 0 || erased_[before - 1] || TypeBehind(key) != kTypeSingleDeletion) return;
    if (TypeBehind(UserKeyOf(items_[before - 1].entry)) != kTypeValue) return;
    erased_[before - 1] = true;
    erased_[index] = true;
    ++pairs_;
  }

  // The key's slot: index plus one of its last change; 0: none.
  uint32_t* SlotOf(const MemtableItem& item, const Slice& key) {
    constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;
    const size_t mask = slots_.size() - 1;
    for (size_t at = ((item.high ^ std::rotl(item.low, 32)) * kOdd) >> 32;; ++at) {
      uint32_t* slot = &slots_[at & mask];
      if (*slot == 0) return slot;
      const MemtableItem& other = items_[*slot - 1];
      if (other.high == item.high && other.low == item.low && UserKeyOf(other.entry) == key) {
        return slot;
      }
    }
  }

  MemtableItems& items_;
  std::vector<bool> erased_;
  std::vector<uint32_t> slots_;
  size_t pairs_ = 0;
};

}  // namespace

MemtableItem MemtableItemOf(const char* entry) {
  const Slice key = UserKeyOf(entry);
  char prefix[16] = {};
  memcpy(prefix, key.data(), std::min(key.size(), sizeof(prefix)));
  return {LoadBigEndian<uint64_t>(prefix), LoadBigEndian<uint64_t>(prefix + 8), entry};
}

void ErasePairs(MemtableItems* items) { PairEraser(items).Erase(); }

}  // namespace nowcalls::store
