// SlotArena: objects by slot, at addresses that never move, close together.
//
// Thread: loop. Memory comes in chunks, for ever; slots are reused. The first chunk gets its pages
// as they are touched, so that who has few objects needs little; the next ones lie on huge pages
// (base/mapped_memory.h) if they fill one at least. Chunks begin a page: objects whose size is a
// power of two, up to that of a page, each lie on one.
#ifndef NOWCALLS_CORE_SLOT_ARENA_H_
#define NOWCALLS_CORE_SLOT_ARENA_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "base/mapped_memory.h"
#include "core/slot_table.h"

namespace nowcalls::core {

// kChunk objects get their memory together.
template <typename T, Slot kChunk>
class SlotArena {
 public:
  SlotArena() = default;
  SlotArena(const SlotArena&) = delete;
  SlotArena& operator=(const SlotArena&) = delete;
  ~SlotArena() {
    for (Slot slot = 0; slot < used_; ++slot) std::destroy_at(&(*this)[slot]);
  }

  // An object as it is made without arguments.
  Slot Take() {
    if (!free_.empty()) {
      const Slot slot = free_.back();
      free_.pop_back();
      return slot;
    }
    if (used_ == chunks_.size() * kChunk) AddChunk();
    std::construct_at(&(*this)[used_]);
    return used_++;
  }
  // REQUIRES: taken, and not returned since.
  void Return(Slot slot) {
    (*this)[slot] = T{};
    free_.push_back(slot);
  }

  T& operator[](Slot slot) { return Chunk(slot)[slot % kChunk]; }
  const T& operator[](Slot slot) const { return Chunk(slot)[slot % kChunk]; }

 private:
  T* Chunk(Slot slot) const { return static_cast<T*>(chunks_[slot / kChunk].data()); }
  void AddChunk() {
    constexpr size_t kBytes = kChunk * sizeof(T);
    const bool huge = !chunks_.empty() && kBytes >= MappedMemory::kHugePageBytes;
    chunks_.push_back(huge ? MappedMemory::OnHugePages(kBytes) : MappedMemory::Untouched(kBytes));
  }

  std::vector<MappedMemory> chunks_;
  Slot used_ = 0;  // Slots ever taken.
  std::vector<Slot> free_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_SLOT_ARENA_H_
