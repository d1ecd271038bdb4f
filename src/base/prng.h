// Prng: reproducible numbers; not for secrets.
//
// Thread: one at a time. xoshiro256** (Blackman, Vigna) seeded through splitmix64. A seed's numbers
// never change.
#ifndef NOWCALLS_BASE_PRNG_H_
#define NOWCALLS_BASE_PRNG_H_

#include <array>
#include <bit>
#include <cstdint>

namespace nowcalls {

class Prng {
 public:
  explicit Prng(uint64_t seed) {
    for (uint64_t& word : state_) word = SplitMix64(&seed);
  }

  uint64_t Next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // 0 .. bound - 1, bias below bound / 2^64. REQUIRES: bound > 0.
  uint64_t Below(uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>(static_cast<Wide>(Next()) * bound >> 64);
  }

  // Both included. REQUIRES: low <= high.
  int64_t Between(int64_t low, int64_t high) {
    const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
    const uint64_t offset = span == UINT64_MAX ? Next() : Below(span + 1);
    return static_cast<int64_t>(static_cast<uint64_t>(low) + offset);
  }

  bool ChancePerMillion(uint32_t parts) { return Below(1'000'000) < parts; }

 private:
  static uint64_t SplitMix64(uint64_t* seed) {
    uint64_t z = *seed += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }

  std::array<uint64_t, 4> state_{};
};

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_PRNG_H_
