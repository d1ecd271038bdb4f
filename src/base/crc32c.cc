#include "base/crc32c.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

#include <array>
#include <cstring>

namespace nowcalls {
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
__attribute__((target("sse4.2"))) uint32_t ExtendByInstruction(uint32_t crc,
                                                               std::string_view more) {
  uint64_t state = ~crc;
  // Eight bytes an instruction, then the rest byte by byte.
  for (; more.size() >= sizeof(uint64_t); more.remove_prefix(sizeof(uint64_t))) {
    uint64_t eight = 0;
    std::memcpy(&eight, more.data(), sizeof(eight));
    state = _mm_crc32_u64(state, eight);
  }
  auto low = static_cast<uint32_t>(state);
  for (const char byte : more) low = _mm_crc32_u8(low, static_cast<uint8_t>(byte));
  return ~low;
}
#endif

}  // namespace

uint32_t ExtendCrc32cByTable(uint32_t crc, std::string_view more) {
  crc = ~crc;
  for (const char byte : more) {
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  }
  return ~crc;
}

uint32_t ExtendCrc32c(uint32_t crc, std::string_view more) {
#if defined(__x86_64__)
  // Asked once: the binary runs on any x86-64.
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return ExtendByInstruction(crc, more);
#endif
  return ExtendCrc32cByTable(crc, more);
}

}  // namespace nowcalls
