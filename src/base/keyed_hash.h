// KeyedHash: 64 bits of two numbers, or of a number and a text, that peers may choose.
//
// Thread: any; pure. SipHash-2-4 (Aumasson, Bernstein 2012) of the bytes of both, numbers as
// little-endian: who does not know the key cannot choose inputs whose hashes have anything in
// common.
#ifndef NOWCALLS_BASE_KEYED_HASH_H_
#define NOWCALLS_BASE_KEYED_HASH_H_

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace nowcalls {

// The finalizer of splitmix64 (Steele, Lea, Flood 2014): one-to-one, and every input bit reaches
// every output bit. For numbers that peers cannot choose.
constexpr uint64_t MixBits(uint64_t v) {
  v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9;
  v = (v ^ (v >> 27)) * 0x94d049bb133111eb;
  return v ^ (v >> 31);
}

// The state of SipHash-2-4 between two words.
struct SipState {
  constexpr explicit SipState(const std::array<uint64_t, 2>& key)
      : v0(key[0] ^ 0x736f6d6570736575),
        v1(key[1] ^ 0x646f72616e646f6d),
        v2(key[0] ^ 0x6c7967656e657261),
        v3(key[1] ^ 0x7465646279746573) {}

  constexpr void Rounds(int count) {
    for (; count > 0; --count) {
      v0 += v1;
      v1 = std::rotl(v1, 13) ^ v0;
      v0 = std::rotl(v0, 32);
      v2 += v3;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1;
      v1 = std::rotl(v1, 17) ^ v2;
      v2 = std::rotl(v2, 32);
    }
  }
  constexpr void Add(uint64_t word) {
    v3 ^= word;
    Rounds(2);
    v0 ^= word;
  }
  constexpr uint64_t Finish() {
    v2 ^= 0xff;
    Rounds(4);
    return v0 ^ v1 ^ v2 ^ v3;
  }

  uint64_t v0, v1, v2, v3;
};

constexpr uint64_t KeyedHash(const std::array<uint64_t, 2>& key, uint64_t first, uint64_t second) {
  constexpr uint64_t kLength = uint64_t{16} << 56;
  SipState state(key);
  state.Add(first);
  state.Add(second);
  state.Add(kLength);
  return state.Finish();
}

inline uint64_t KeyedHash(const std::array<uint64_t, 2>& key, uint64_t first,
                          std::string_view text) {
  static_assert(std::endian::native == std::endian::little);
  SipState state(key);
  state.Add(first);
  const uint64_t last = (sizeof(first) + text.size()) << 56;
  for (; text.size() >= sizeof(uint64_t); text.remove_prefix(sizeof(uint64_t))) {
    uint64_t word;
    std::memcpy(&word, text.data(), sizeof(word));
    state.Add(word);
  }
  uint64_t rest = 0;
  std::memcpy(&rest, text.data(), text.size());
  state.Add(last | rest);
  return state.Finish();
}

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_KEYED_HASH_H_
