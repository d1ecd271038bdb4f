#include "core/fence_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/prng.h"

namespace nowcalls::core {
namespace {

std::vector<FenceAndSlot> Sorted(const std::vector<FenceAndSlot>& tokens) {
  FenceOrder order;
  for (const auto& [fence, slot] : tokens) order.Add(fence, slot);
  const auto& sorted = order.Sort();
  return {sorted.begin(), sorted.end()};
}

TEST_CASE("tokens are put in the order of their fences, whatever these are") {
  Prng prng(7);
  for (const uint32_t size : {0U, 1U, 2U, 100U, 5000U}) {
    for (const int bits : {1, 10, 11, 12, 22, 23, 40, 64}) {
      CAPTURE(size);
      CAPTURE(bits);
      const uint64_t base = bits > 40 ? 0 : prng.Next() >> 1;
      std::vector<FenceAndSlot> tokens;
      for (uint32_t slot = 0; slot < size; ++slot) {
        tokens.emplace_back(base + (prng.Next() >> (64 - bits)), TokenSlot(slot));
      }
      std::vector<FenceAndSlot> wanted = tokens;
      // Slots rise, so equal fences stay as they came.
      std::sort(wanted.begin(), wanted.end());
      CHECK(Sorted(tokens) == wanted);
    }
  }
}

TEST_CASE("fences that differ in their highest digit only are put in order") {
  const uint64_t high = uint64_t{1} << 63;
  CHECK(
      Sorted({{high, TokenSlot(1)}, {0, TokenSlot(2)}, {high, TokenSlot(3)}, {0, TokenSlot(4)}}) ==
      std::vector<FenceAndSlot>{
          {0, TokenSlot(2)}, {0, TokenSlot(4)}, {high, TokenSlot(1)}, {high, TokenSlot(3)}});
  CHECK(Sorted({{UINT64_MAX, TokenSlot(1)}, {UINT64_MAX - 1, TokenSlot(2)}}) ==
        std::vector<FenceAndSlot>{{UINT64_MAX - 1, TokenSlot(2)}, {UINT64_MAX, TokenSlot(1)}});
}

}  // namespace
}  // namespace nowcalls::core
