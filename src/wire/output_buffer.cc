#include "wire/output_buffer.h"

#include <algorithm>
#include <cstdint>

#include "base/check.h"

namespace nowcalls::wire {

void OutputBuffer::Grow(size_t more) {
  constexpr size_t kLeastBytes = 512;
  // Neither sum below can overflow. Doubling keeps the cost of appending linear.
  NOWCALLS_CHECK(more <= SIZE_MAX / 4 && capacity_ <= SIZE_MAX / 4);
  const size_t capacity = std::max({kLeastBytes, capacity_ * 2, size_ + more});
  // No memory ends the process: half a reply cannot be taken back.
  char* data = static_cast<char*>(std::realloc(data_, capacity));
  NOWCALLS_CHECK(data != nullptr);
  data_ = data;
  capacity_ = capacity;
}

}  // namespace nowcalls::wire
