#include "core/tables/token_ids.h"

#include "base/check.h"
#include "base/keyed_hash.h"

namespace nowcalls::core {
namespace {

constexpr int kLowBits = 32;
constexpr uint64_t kLowMask = 0xffffffff;
constexpr uint64_t kHighMask = 0x7fffffff;

}  // namespace

TokenIds::TokenIds(const std::array<uint64_t, 2>& key) {
  uint64_t state = key[0];
  for (uint64_t& round_key : round_keys_) {
    state += 0x9e3779b97f4a7c15;
    round_key = MixBits(state ^ MixBits(key[1] + state));
  }
}

// An unbalanced Feistel network over halves of 31 and 32 bits; six rounds, each undone by Decrypt
// in reverse order. Random numbers would repeat after some 2^31 draws, hours of a busy server.
// Whoever guesses an id gains nothing: a session can only release its own tokens.
uint64_t TokenIds::Encrypt(uint64_t value) const {
  uint64_t high = value >> kLowBits;
  uint64_t low = value & kLowMask;
  for (int round = 0; round < kRounds; round += 2) {
    high ^= MixBits(low ^ round_keys_[round]) & kHighMask;
    low ^= MixBits(high ^ round_keys_[round + 1]) & kLowMask;
  }
  return high << kLowBits | low;
}

uint64_t TokenIds::Decrypt(uint64_t value) const {
  uint64_t high = value >> kLowBits;
  uint64_t low = value & kLowMask;
  for (int round = kRounds - 2; round >= 0; round -= 2) {
    low ^= MixBits(high ^ round_keys_[round + 1]) & kLowMask;
    high ^= MixBits(low ^ round_keys_[round]) & kHighMask;
  }
  return high << kLowBits | low;
}

TokenId TokenIds::FromFence(Fence fence) const {
  NOWCALLS_CHECK(fence.value >= 1 && fence.value <= kMax);
  if (fence == last_.fence) return last_.id;
  last_ = {fence, TokenId{IdOf(fence.value)}};
  return last_.id;
}

Fence TokenIds::ToFence(TokenId id) const {
  if (id.value == 0 || id.value > kMax) return Fence{0};
  if (id == last_.id) return last_.fence;
  // The last pair, and the pairs asked for ahead, save the slow decryption.
  const Pair& ahead = ahead_[id.value % kAhead];
  last_ = id == ahead.id ? ahead : Pair{FenceOf(id.value), id};
  return last_.fence;
}

Fence TokenIds::ToFenceAhead(TokenId id) const {
  if (id.value == 0 || id.value > kMax) return Fence{0};
  Pair& ahead = ahead_[id.value % kAhead];
  if (id != ahead.id) ahead = {FenceOf(id.value), id};
  return ahead.fence;
}

Fence TokenIds::FenceOf(uint64_t id) const {
  // Zero is no fence and no id: the id Encrypt(0) belongs to the fence that Encrypt maps to 0.
  const uint64_t fence = Decrypt(id);
  return Fence{fence != 0 ? fence : Decrypt(0)};
}

}  // namespace nowcalls::core
