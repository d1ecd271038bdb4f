// BufferPool: memory of buffers between uses.
//
// Thread: loop. Keeps at most kSpareMax buffers of at most kCapacityMax bytes: 32 MiB.
#ifndef NOWCALLS_ENGINE_BUFFER_POOL_H_
#define NOWCALLS_ENGINE_BUFFER_POOL_H_

#include <cstddef>
#include <vector>

#include "wire/output_buffer.h"

namespace nowcalls::engine {

class BufferPool {
 public:
  // Gives `buffer` spare memory if it has none.
  void Lend(wire::OutputBuffer* buffer) {
    if (buffer->capacity() > 0 || spare_.empty()) return;
    buffer->swap(spare_.back());
    spare_.pop_back();
  }

  // Empties `buffer` and takes its memory back.
  void TakeBack(wire::OutputBuffer* buffer) {
    buffer->Clear();
    if (buffer->capacity() == 0) return;
    if (spare_.size() < kSpareMax && buffer->capacity() <= kCapacityMax) {
      spare_.emplace_back().swap(*buffer);
    } else {
      buffer->ShrinkToEmpty();
    }
  }

 private:
  static constexpr size_t kSpareMax = 512;
  static constexpr size_t kCapacityMax = 64 * 1024;
  std::vector<wire::OutputBuffer> spare_;
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_BUFFER_POOL_H_
