// KeyedHash: hashes of numbers or strings that peers may choose.
//
// Thread: any; pure. SipHash-2-4 (Aumasson, Bernstein 2012), of two numbers as 16 bytes.
#ifndef NOWCALLS_BASE_KEYED_HASH_H_
#define NOWCALLS_BASE_KEYED_HASH_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace nowcalls {

// The finalizer of splitmix64 (Steele, Lea, Flood 2014), one-to-one. For numbers that peers cannot
// choose.
constexpr uint64_t MixBits(uint64_t v) {
  v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9;
  v = (v ^ (v >> 27)) * 0x94d049bb133111eb;
  return v ^ (v >> 31);
}

class SipState {
 public:
  constexpr explicit SipState(const std::array<uint64_t, 2>& key)
      : v0_(key[0] ^ 0x736f6d6570736575),
        v1_(key[1] ^ 0x646f72616e646f6d),
        v2_(key[0] ^ 0x6c7967656e657261),
        v3_(key[1] ^ 0x7465646279746573) {}

  constexpr void Add(uint64_t word) {
    v3_ ^= word;
    Rounds(2);
    v0_ ^= word;
  }
  constexpr uint64_t End() {
    v2_ ^= 0xff;
    Rounds(4);
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  constexpr void Rounds(int count) {
    for (; count > 0; --count) {
      v0_ += v1_;
      v1_ = std::rotl(v1_, 13) ^ v0_;
      v0_ = std::rotl(v0_, 32);
      v2_ += v3_;
      v3_ = std::rotl(v3_, 16) ^ v2_;
      v0_ += v3_;
      v3_ = std::rotl(v3_, 21) ^ v0_;
      v2_ += v1_;
      v1_ = std::rotl(v1_, 17) ^ v2_;
      v2_ = std::rotl(v2_, 32);
    }
  }

  uint64_t v0_;
  uint64_t v1_;
  uint64_t v2_;
  uint64_t v3_;
};

constexpr uint64_t KeyedHash(const std::array<uint64_t, 2>& key, uint64_t first, uint64_t second) {
  constexpr uint64_t kLength = uint64_t{16} << 56;
  SipState state(key);
  for (const uint64_t word : {first, second, kLength}) state.Add(word);
  return state.End();
}

inline uint64_t KeyedHash(const std::array<uint64_t, 2>& key, std::string_view bytes) {
  constexpr size_t kWord = sizeof(uint64_t);
  SipState state(key);
  const uint64_t length = uint64_t{bytes.size()} << 56;
  for (; bytes.size() >= kWord; bytes.remove_prefix(kWord)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), kWord);
    state.Add(word);
  }
  uint64_t rest = 0;
  if (!bytes.empty()) std::memcpy(&rest, bytes.data(), bytes.size());
  state.Add(length | rest);
  return state.End();
}

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_KEYED_HASH_H_
