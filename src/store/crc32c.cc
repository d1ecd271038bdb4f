#include "store/crc32c.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

#include <array>
#include <cstring>

namespace nowcalls::store {
namespace {

constexpr uint32_t kReversedPolynomial = 0x82f63b78;

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReversedPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t Crc32cByInstruction(std::string_view bytes) {
  uint64_t crc = 0xffffffff;
  for (; bytes.size() >= sizeof(uint64_t); bytes.remove_prefix(sizeof(uint64_t))) {
    uint64_t eight = 0;
    std::memcpy(&eight, bytes.data(), sizeof(eight));
    crc = _mm_crc32_u64(crc, eight);
  }
  auto low = static_cast<uint32_t>(crc);
  for (const char byte : bytes) low = _mm_crc32_u8(low, static_cast<uint8_t>(byte));
  return ~low;
}
#endif

}  // namespace

uint32_t Crc32cByTable(std::string_view bytes) {
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  }
  return ~crc;
}

uint32_t Crc32c(std::string_view bytes) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return Crc32cByInstruction(bytes);
#endif
  return Crc32cByTable(bytes);
}

}  // namespace nowcalls::store
