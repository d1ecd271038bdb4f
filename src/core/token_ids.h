// TokenIds: the one-to-one map between fences and token ids.
//
// Thread: one at a time.
//
// A token id must look random and must never repeat. Random 63-bit numbers repeat after about 2^31
// draws, which a busy server reaches within hours; so the id of a grant is its fence sent through a
// keyed permutation of 1 .. 2^63-1. Fences never repeat, therefore ids do not either, and the fence
// need not be stored beside the id. The key is drawn once for each ledger.
//
// The permutation is an unbalanced Feistel network of six rounds over halves of 31 and 32 bits,
// with zero stepped over. It hides the order of grants from a casual reader; it is not a secret
// that anything's safety rests on: a session can only release its own tokens.
#ifndef NOWCALLS_CORE_TOKEN_IDS_H_
#define NOWCALLS_CORE_TOKEN_IDS_H_

#include <array>
#include <cstdint>

#include "nowcalls/types.h"

namespace nowcalls::core {

class TokenIds {
 public:
  static constexpr uint64_t kMax = (uint64_t{1} << 63) - 1;

  explicit TokenIds(const std::array<uint64_t, 2>& key);

  // REQUIRES: 1 <= fence <= kMax.
  TokenId FromFence(Fence fence) const;

  // The fence whose id this is, if it was ever given out. Fence 0 for an id that none can have: 0
  // or above kMax.
  Fence ToFence(TokenId id) const;

  // The same, and remembers it for ToFence, which is called soon.
  Fence ToFenceAhead(TokenId id) const;

  // Whether `id` is FromFence(fence), for any fence. Remembers nothing, so that a processor can
  // work on several calls at once.
  bool IsIdOf(TokenId id, Fence fence) const {
    return fence.value >= 1 && fence.value <= kMax && id.value == IdOf(fence.value);
  }

 private:
  static constexpr int kRounds = 6;
  static constexpr size_t kAhead = 64;

  // REQUIRES: 1 <= fence <= kMax.
  uint64_t IdOf(uint64_t fence) const {
    const uint64_t id = Encrypt(fence);
    return id != 0 ? id : Encrypt(0);
  }
  // REQUIRES: 1 <= id <= kMax.
  Fence FenceOf(uint64_t id) const;
  uint64_t Encrypt(uint64_t value) const;
  uint64_t Decrypt(uint64_t value) const;

  struct Pair {
    Fence fence;
    TokenId id;
  };

  std::array<uint64_t, kRounds> round_keys_{};
  mutable Pair last_{};                       // A call asks for the same one several times.
  mutable std::array<Pair, kAhead> ahead_{};  // By id; those that ToFenceAhead was asked for.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TOKEN_IDS_H_
