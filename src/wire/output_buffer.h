// OutputBuffer: bytes on their way out; the stream type of msgpack::packer.
//
// Thread: one at a time.
#ifndef NOWCALLS_WIRE_OUTPUT_BUFFER_H_
#define NOWCALLS_WIRE_OUTPUT_BUFFER_H_

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace nowcalls::wire {

class OutputBuffer {
 public:
  OutputBuffer() = default;
  OutputBuffer(OutputBuffer&& other) noexcept { swap(other); }
  OutputBuffer& operator=(OutputBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  OutputBuffer(const OutputBuffer&) = delete;
  OutputBuffer& operator=(const OutputBuffer&) = delete;
  ~OutputBuffer() { std::free(data_); }

  void write(const char* bytes, size_t size) {  // Named for msgpack::packer.
    if (size == 0) return;                      // memcpy must not see a null pointer.
    if (capacity_ - size_ < size) Grow(size);
    std::memcpy(data_ + size_, bytes, size);
    size_ += size;
  }
  void Append(std::string_view bytes) { write(bytes.data(), bytes.size()); }

  const char* data() const { return data_; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  std::string_view view() const { return {data_, size_}; }

  void Clear() { size_ = 0; }
  void ShrinkToEmpty() {
    std::free(data_);
    data_ = nullptr;
    size_ = capacity_ = 0;
  }
  void Truncate(size_t size) { size_ = size; }  // REQUIRES: size <= this->size().
  // Drops the first `size` bytes. REQUIRES: size <= this->size().
  void Consume(size_t size) {
    if (data_ == nullptr) return;  // memmove must not see a null pointer.
    size_ -= size;
    std::memmove(data_, data_ + size, size_);
  }

  void swap(OutputBuffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

 private:
  void Grow(size_t more);  // Ends the process when memory is exhausted.

  char* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_OUTPUT_BUFFER_H_
