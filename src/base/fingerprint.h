// Fingerprint: 64 bits that tell whether a text changed.
//
// Thread: any; pure. FNV-1a (Fowler, Noll, Vo); no protection against attackers.
#ifndef NOWCALLS_BASE_FINGERPRINT_H_
#define NOWCALLS_BASE_FINGERPRINT_H_

#include <cstdint>
#include <string_view>

namespace nowcalls {

constexpr uint64_t Fingerprint(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash ^= static_cast<uint8_t>(c);
    hash *= 0x100000001b3;
  }
  return hash;
}

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_FINGERPRINT_H_
