#include "core/token_ids.h"

#include "base/check.h"

namespace nowcalls::core {
namespace {

constexpr int kLowBits = 32;
constexpr uint64_t kLowMask = 0xffffffff;
constexpr uint64_t kHighMask = 0x7fffffff;

// The finalizer of splitmix64 (Steele, Lea, Flood 2014): every input bit reaches every output bit.
uint64_t Mix(uint64_t v) {
  v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9;
  v = (v ^ (v >> 27)) * 0x94d049bb133111eb;
  return v ^ (v >> 31);
}

}  // namespace

TokenIds::TokenIds(const std::array<uint64_t, 2>& key) {
  uint64_t state = key[0];
  for (uint64_t& round_key : round_keys_) {
    state += 0x9e3779b97f4a7c15;
    round_key = Mix(state ^ Mix(key[1] + state));
  }
}

uint64_t TokenIds::Encrypt(uint64_t value) const {
  uint64_t high = value >> kLowBits;
  uint64_t low = value & kLowMask;
  for (int round = 0; round < kRounds; round += 2) {
    high ^= Mix(low ^ round_keys_[round]) & kHighMask;
    low ^= Mix(high ^ round_keys_[round + 1]) & kLowMask;
  }
  return high << kLowBits | low;
}

uint64_t TokenIds::Decrypt(uint64_t value) const {
  uint64_t high = value >> kLowBits;
  uint64_t low = value & kLowMask;
  for (int round = kRounds - 2; round >= 0; round -= 2) {
    low ^= Mix(high ^ round_keys_[round + 1]) & kLowMask;
    high ^= Mix(low ^ round_keys_[round]) & kHighMask;
  }
  return high << kLowBits | low;
}

TokenId TokenIds::FromFence(Fence fence) const {
  NOWCALLS_CHECK(fence.value >= 1 && fence.value <= kMax);
  const uint64_t id = Encrypt(fence.value);
  return TokenId{id != 0 ? id : Encrypt(0)};
}

Fence TokenIds::ToFence(TokenId id) const {
  if (id.value == 0 || id.value > kMax) return Fence{0};
  const uint64_t fence = Decrypt(id.value);
  return Fence{fence != 0 ? fence : Decrypt(0)};
}

}  // namespace nowcalls::core
