#include "core/tables/slot_table.h"

#include <bit>

#include "base/check.h"

namespace nowcalls::core {
namespace {

constexpr size_t kEntriesMin = 8;

// A table grows when more than 3/4 of it is used.
bool IsFull(size_t used, size_t entries) { return used * 4 > entries * 3; }

// 8, 12, 16, 24, 32 and so on. A doubled table is up to 5/8 empty, these up to half.
size_t NextSize(size_t entries) {
  if (entries < kEntriesMin) return kEntriesMin;
  return std::has_single_bit(entries) ? entries / 2 * 3 : entries / 3 * 4;
}

}  // namespace

template <typename S>
void SlotTable<S>::Insert(uint32_t hash, S slot) {
  if (IsFull(used_ + 1, entries_.size())) Resize(NextSize(entries_.size()));
  Place({hash, slot});
  ++used_;
}

template <typename S>
void SlotTable<S>::Place(const Entry& entry) {
  size_t i = Home(entry.hash);
  while (entries_[i].slot != S()) i = Next(i);
  entries_[i] = entry;
}

// Linear probing without tombstones: entries behind the hole move back when their probe passed it
// (Knuth, TAOCP 6.4, algorithm R).
template <typename S>
void SlotTable<S>::Erase(uint32_t hash, S slot) {
  NOWCALLS_CHECK(used_ > 0);
  size_t hole = Home(hash);
  while (entries_[hole].slot != slot) {
    NOWCALLS_CHECK(entries_[hole].slot != S());
    hole = Next(hole);
  }
  // An entry whose home lies behind the hole stays: its probe never passes the hole.
  for (size_t i = Next(hole); entries_[i].slot != S(); i = Next(i)) {
    if (Steps(Home(entries_[i].hash), i) < Steps(hole, i)) continue;
    entries_[hole] = entries_[i];
    hole = i;
  }
  entries_[hole] = Entry{};
  --used_;
}

template <typename S>
void SlotTable<S>::Reserve(size_t slots) {
  if (slots == 0) return;
  size_t size = kEntriesMin;
  while (IsFull(slots, size)) size = NextSize(size);
  if (entries_.size() < size) Resize(size);
}

template <typename S>
void SlotTable<S>::ShrinkIfSparse() {
  if (used_ * 8 >= entries_.size() || entries_.size() <= kEntriesMin) return;
  size_t size = kEntriesMin;
  // Room to double, so that a table at the edge does not grow and shrink by turns.
  while (IsFull(used_ * 2, size)) size = NextSize(size);
  Resize(size);
}

template <typename S>
void SlotTable<S>::Resize(size_t size) {
  // Hashes alone place an entry; no object is touched.
  PopulatedVector<Entry> old(size);
  old.swap(entries_);
  for (const Entry& entry : old) {
    if (entry.slot != S()) Place(entry);
  }
}

template class SlotTable<FlowSlot>;
template class SlotTable<KeySlot>;
template class SlotTable<TokenSlot>;
template class SlotTable<ValueSlot>;

}  // namespace nowcalls::core
