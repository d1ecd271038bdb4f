// SlotArena: objects by slot, at addresses that never move.
//
// Thread: loop. Chunks stay, slots are reused. A chunk begins a page; one of 128 KiB or more takes
// pages as objects are first made.
#ifndef NOWCALLS_CORE_TABLES_SLOT_ARENA_H_
#define NOWCALLS_CORE_TABLES_SLOT_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "core/tables/slot.h"

namespace nowcalls::core {

template <typename S, typename T, uint32_t kChunk>
class SlotArena {
 public:
  SlotArena() = default;
  SlotArena(const SlotArena&) = delete;
  SlotArena& operator=(const SlotArena&) = delete;
  ~SlotArena() {
    for (uint32_t i = 0; i < used_; ++i) std::destroy_at(&(*this)[S(i)]);
  }

  S Take() {
    if (!free_.empty()) {
      const S slot = free_.back();
      free_.pop_back();
      return slot;
    }
    if (used_ == chunks_.size() * kChunk) chunks_.push_back(NewChunk());
    const S slot(used_++);
    std::construct_at(&(*this)[slot]);
    return slot;
  }
  // Resets the object to T{}. REQUIRES: taken, and not returned since.
  void Return(S slot) {
    (*this)[slot] = T{};
    free_.push_back(slot);
  }

  T& operator[](S slot) { return chunks_[slot.value / kChunk].get()[slot.value % kChunk]; }
  const T& operator[](S slot) const {
    return chunks_[slot.value / kChunk].get()[slot.value % kChunk];
  }

  uint32_t used() const { return used_; }  // Slots ever taken; all values are below.

 private:
  static constexpr std::align_val_t kPage{4096};

  // Memory only: the arena destroys the objects.
  struct FreeChunk {
    void operator()(T* chunk) const { ::operator delete(chunk, kPage); }
  };
  using ChunkPtr = std::unique_ptr<T, FreeChunk>;

  static ChunkPtr NewChunk() {
    return ChunkPtr(static_cast<T*>(::operator new(kChunk * sizeof(T), kPage)));
  }

  std::vector<ChunkPtr> chunks_;
  uint32_t used_ = 0;
  std::vector<S> free_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TABLES_SLOT_ARENA_H_
