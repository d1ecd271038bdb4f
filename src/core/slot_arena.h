// SlotArena: objects by slot, at addresses that never move, close together.
//
// Thread: loop. Memory comes in chunks that stay until the arena ends; slots are reused. A chunk
// begins a page, so an object whose size is a power of two, up to that of a page, lies on one page.
// A chunk of 128 KiB or more takes pages from the system only as its objects are first made.
#ifndef NOWCALLS_CORE_SLOT_ARENA_H_
#define NOWCALLS_CORE_SLOT_ARENA_H_

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

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

  // The slot of a default-constructed object.
  Slot Take() {
    if (!free_.empty()) {
      const Slot slot = free_.back();
      free_.pop_back();
      return slot;
    }
    if (used_ == chunks_.size() * kChunk) chunks_.push_back(NewChunk());
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
  static constexpr std::align_val_t kPage{4096};

  // Frees the memory only: the arena destroys the objects.
  struct FreeChunk {
    void operator()(T* chunk) const { ::operator delete(chunk, kPage); }
  };
  using ChunkPtr = std::unique_ptr<T, FreeChunk>;

  static ChunkPtr NewChunk() {
    return ChunkPtr(static_cast<T*>(::operator new(kChunk * sizeof(T), kPage)));
  }

  std::vector<ChunkPtr> chunks_;
  Slot used_ = 0;  // Slots ever taken.
  std::vector<Slot> free_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_SLOT_ARENA_H_
