#include "core/tables/token_ids.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/prng.h"

namespace nowcalls::core {
namespace {

constexpr std::array<uint64_t, 2> kKey = {0x1122334455667788, 0x99aabbccddeeff00};

bool InRange(TokenId id) { return id.value >= 1 && id.value <= TokenIds::kMax; }

TEST_CASE("a fence comes back from its token id, at the edges and in between") {
  const TokenIds ids(kKey);
  std::vector<uint64_t> fences = {1, 2, 3, TokenIds::kMax, TokenIds::kMax - 1};
  for (int bit = 1; bit < 63; ++bit) {
    fences.push_back(uint64_t{1} << bit);
    fences.push_back((uint64_t{1} << bit) - 1);
  }
  Prng prng(1);
  for (int i = 0; i < 100'000; ++i) fences.push_back(1 + prng.Below(TokenIds::kMax));
  for (const uint64_t fence : fences) {
    const TokenId id = ids.FromFence(Fence{fence});
    if (!InRange(id) || ids.ToFence(id) != Fence{fence}) FAIL("fence " << fence);
  }
}

TEST_CASE("ids that are asked for ahead give the same fences, in any order") {
  const TokenIds ids(kKey);
  const TokenIds fresh(kKey);
  Prng prng(4);
  for (int i = 0; i < 10'000; ++i) {
    const TokenId ahead{prng.Below(2) == 0 ? prng.Below(200) : 1 + prng.Below(TokenIds::kMax)};
    const TokenId asked{prng.Below(2) == 0 ? prng.Below(200) : ahead.value};
    if (ids.ToFenceAhead(ahead) != fresh.ToFence(ahead)) FAIL("ahead " << ahead.value);
    if (ids.ToFence(asked) != fresh.ToFence(asked)) FAIL("asked " << asked.value);
    if (asked.value != 0 && ids.FromFence(ids.ToFence(asked)) != asked) FAIL(asked.value);
  }
  CHECK(ids.ToFenceAhead(TokenId{TokenIds::kMax + 1}) == Fence{0});
}

TEST_CASE("every id belongs to one fence, also those that no grant has reached") {
  const TokenIds ids(kKey);
  Prng prng(2);
  for (int i = 0; i < 100'000; ++i) {
    const TokenId id{1 + prng.Below(TokenIds::kMax)};
    const Fence fence = ids.ToFence(id);
    if (fence.value < 1 || fence.value > TokenIds::kMax || ids.FromFence(fence) != id) {
      FAIL("id " << id.value);
    }
  }
}

TEST_CASE("an id is that of its fence and of no other") {
  const TokenIds ids(kKey);
  Prng prng(3);
  for (int i = 0; i < 100'000; ++i) {
    const Fence fence{i < 1000 ? i + 1 : 1 + prng.Below(TokenIds::kMax)};
    const TokenId id = ids.FromFence(fence);
    const Fence other{fence.value ^ uint64_t{1} << prng.Below(64)};
    const TokenId changed{id.value ^ uint64_t{1} << prng.Below(64)};
    if (!ids.IsIdOf(id, fence) || ids.IsIdOf(id, other) || ids.IsIdOf(changed, fence)) {
      FAIL("fence " << fence.value);
    }
  }
  // The one that steps over zero.
  const Fence stepping = ids.ToFence(ids.FromFence(ids.ToFence(TokenId{1})));
  CHECK(ids.IsIdOf(TokenId{1}, stepping));
  for (const uint64_t none : {uint64_t{0}, TokenIds::kMax + 1, UINT64_MAX}) {
    CHECK_FALSE(ids.IsIdOf(TokenId{1}, Fence{none}));
    CHECK_FALSE(ids.IsIdOf(TokenId{0}, Fence{none}));
  }
}

// Invariant 6: token ids never repeat.
TEST_CASE("a million consecutive fences have a million different ids") {
  const TokenIds ids(kKey);
  std::vector<uint64_t> seen;
  seen.reserve(1'000'000);
  for (uint64_t fence = 1; fence <= 1'000'000; ++fence) {
    seen.push_back(ids.FromFence(Fence{fence}).value);
  }
  std::sort(seen.begin(), seen.end());
  CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
  CHECK(seen.front() >= 1);
  CHECK(seen.back() <= TokenIds::kMax);
}

// The documented permutation once more, without the detour over zero.
uint64_t Mix(uint64_t v) {
  v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9;
  v = (v ^ (v >> 27)) * 0x94d049bb133111eb;
  return v ^ (v >> 31);
}
uint64_t Image(const std::array<uint64_t, 2>& key, uint64_t value) {
  uint64_t halves[2] = {value & 0xffffffff, value >> 32};
  const uint64_t masks[2] = {0xffffffff, 0x7fffffff};
  uint64_t state = key[0];
  for (int round = 0; round < 6; ++round) {
    state += 0x9e3779b97f4a7c15;
    const int changed = round % 2 == 0 ? 1 : 0;
    halves[changed] ^= Mix(halves[1 - changed] ^ Mix(state ^ Mix(key[1] + state))) & masks[changed];
  }
  return halves[1] << 32 | halves[0];
}

TEST_CASE("no token has id 0: the fence whose image is 0 takes the image of 0") {
  Prng prng(3);
  for (int i = 0; i < 200; ++i) {
    const std::array<uint64_t, 2> key = {prng.Next(), prng.Next()};
    const TokenIds ids(key);
    CHECK(ids.ToFence(TokenId{0}) == Fence{0});
    CHECK(ids.FromFence(Fence{12345}).value == Image(key, 12345));
    const TokenId of_zero{Image(key, 0)};
    REQUIRE(of_zero.value != 0);
    const Fence stepping = ids.ToFence(of_zero);
    CHECK(Image(key, stepping.value) == 0);
    CHECK(ids.FromFence(stepping) == of_zero);
  }
}

TEST_CASE("an id above 2^63-1 belongs to no fence") {
  const TokenIds ids(kKey);
  CHECK(ids.ToFence(TokenId{TokenIds::kMax + 1}) == Fence{0});
  CHECK(ids.ToFence(TokenId{UINT64_MAX}) == Fence{0});
}

TEST_CASE("ledgers with different keys give different ids, the same key the same ones") {
  const TokenIds ids(kKey);
  const TokenIds same(kKey);
  const TokenIds first_half_differs({kKey[0] ^ 1, kKey[1]});
  const TokenIds second_half_differs({kKey[0], kKey[1] ^ 1});
  int equal = 0;
  for (uint64_t fence = 1; fence <= 1000; ++fence) {
    CHECK(ids.FromFence(Fence{fence}) == same.FromFence(Fence{fence}));
    equal += ids.FromFence(Fence{fence}) == first_half_differs.FromFence(Fence{fence});
    equal += ids.FromFence(Fence{fence}) == second_half_differs.FromFence(Fence{fence});
  }
  CHECK(equal == 0);
}

TEST_CASE("ids of consecutive fences do not tell the order of the grants") {
  const TokenIds ids(kKey);
  int ascending = 0;
  for (uint64_t fence = 1; fence <= 10'000; ++fence) {
    ascending += ids.FromFence(Fence{fence}) < ids.FromFence(Fence{fence + 1});
  }
  CHECK(ascending > 4'500);
  CHECK(ascending < 5'500);
}

}  // namespace
}  // namespace nowcalls::core
