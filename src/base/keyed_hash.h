// KeyedHash: 64 bits of two numbers that peers may choose.
//
// Thread: any; pure. SipHash-2-4 (Aumasson, Bernstein 2012) of the 16 bytes of both numbers: who
// does not know the key cannot choose numbers whose hashes have anything in common.
#ifndef NOWCALLS_BASE_KEYED_HASH_H_
#define NOWCALLS_BASE_KEYED_HASH_H_

#include <array>
#include <bit>
#include <cstdint>

namespace nowcalls {

// The finalizer of splitmix64 (Steele, Lea, Flood 2014): one-to-one, and every input bit reaches
// every output bit. For numbers that peers cannot choose.
constexpr uint64_t MixBits(uint64_t v) {
  v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9;
  v = (v ^ (v >> 27)) * 0x94d049bb133111eb;
  return v ^ (v >> 31);
}

constexpr uint64_t KeyedHash(const std::array<uint64_t, 2>& key, uint64_t first, uint64_t second) {
  uint64_t v0 = key[0] ^ 0x736f6d6570736575;
  uint64_t v1 = key[1] ^ 0x646f72616e646f6d;
  uint64_t v2 = key[0] ^ 0x6c7967656e657261;
  uint64_t v3 = key[1] ^ 0x7465646279746573;
  const auto rounds = [&](int count) {
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
  };
  constexpr uint64_t kLength = uint64_t{16} << 56;
  for (const uint64_t word : {first, second, kLength}) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  }
  v2 ^= 0xff;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_KEYED_HASH_H_
