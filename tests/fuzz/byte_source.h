// ByteSource: the bytes of an input, taken from its beginning.
//
// Thread: one. When there are no more, numbers are 0 and strings shorter than was asked for.
#ifndef NOWCALLS_FUZZ_BYTE_SOURCE_H_
#define NOWCALLS_FUZZ_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace nowcalls::fuzz {

class ByteSource {
 public:
  explicit ByteSource(std::string_view bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  size_t size() const { return bytes_.size(); }

  std::string_view Take(size_t size) {
    const std::string_view head = bytes_.substr(0, size);
    bytes_.remove_prefix(head.size());
    return head;
  }
  uint8_t Byte() {
    const std::string_view byte = Take(1);
    return byte.empty() ? uint8_t{0} : static_cast<uint8_t>(byte.front());
  }
  // Two bytes, the greater first.
  uint16_t Number() {
    const int high = Byte();
    return static_cast<uint16_t>(high << 8 | Byte());
  }
  std::string_view Sized() { return Take(Byte()); }

 private:
  std::string_view bytes_;
};

}  // namespace nowcalls::fuzz

#endif  // NOWCALLS_FUZZ_BYTE_SOURCE_H_
