// TokenIds: the one-to-one map between fences and token ids.
//
// Thread: one at a time.
//
// An id is its fence under a keyed permutation of 1 .. 2^63-1. No safety rests on the key's
// secrecy.
#ifndef NOWCALLS_CORE_TABLES_TOKEN_IDS_H_
#define NOWCALLS_CORE_TABLES_TOKEN_IDS_H_

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

  // The fence of an id that was given out; 0 for an id of 0 or above kMax.
  Fence ToFence(TokenId id) const;

  // The same; a ToFence soon after is fast.
  Fence ToFenceAhead(TokenId id) const;

  // Takes any fence. Caches nothing, so a processor overlaps calls.
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
  Fence FenceOf(uint64_t id) const;  // REQUIRES: 1 <= id <= kMax.
  uint64_t Encrypt(uint64_t value) const;
  uint64_t Decrypt(uint64_t value) const;

  struct Pair {
    Fence fence;
    TokenId id;
  };

  std::array<uint64_t, kRounds> round_keys_{};
  mutable Pair last_{};                       // A call asks several times.
  mutable std::array<Pair, kAhead> ahead_{};  // By id; of ToFenceAhead.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TABLES_TOKEN_IDS_H_
