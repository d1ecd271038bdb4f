// SlotArena: objects by slot, at addresses that never move, close together.
//
// Thread: loop. Memory comes in chunks, for ever; slots are reused. The first chunk gets its pages
// as they are touched, so that who has few objects needs little; the next ones have all of theirs
// at once, and with chunks of 2 MiB huge ones (base/populated_memory.h).
#ifndef NOWCALLS_CORE_SLOT_ARENA_H_
#define NOWCALLS_CORE_SLOT_ARENA_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "base/populated_memory.h"
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

  T& operator[](Slot slot) { return chunks_[slot / kChunk].get()[slot % kChunk]; }
  const T& operator[](Slot slot) const { return chunks_[slot / kChunk].get()[slot % kChunk]; }

 private:
  void AddChunk() {
    const auto allocate = chunks_.empty() ? AllocateUntouched : AllocatePopulated;
    chunks_.emplace_back(static_cast<T*>(allocate(kChunk * sizeof(T), alignof(T)).release()));
  }

  // The memory; the objects in it are ended by the arena.
  std::vector<std::unique_ptr<T, FreeMemory>> chunks_;
  Slot used_ = 0;  // Slots ever taken.
  std::vector<Slot> free_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_SLOT_ARENA_H_
