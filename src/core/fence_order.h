// FenceOrder: sorts tokens by fence, digit by digit.
//
// Thread: one. std::sort takes four times as long.
#ifndef NOWCALLS_CORE_FENCE_ORDER_H_
#define NOWCALLS_CORE_FENCE_ORDER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include "base/populated_memory.h"
#include "core/tables/slot.h"

namespace nowcalls::core {

using FenceAndSlot = std::pair<uint64_t, TokenSlot>;

class FenceOrder {
 public:
  void Reserve(size_t tokens);

  void Add(uint64_t fence, TokenSlot slot);

  // All tokens; equal fences in the order of Add. Once, after the last Add.
  const PopulatedVector<FenceAndSlot>& Sort();
  const PopulatedVector<FenceAndSlot>& sorted() const { return tokens_; }

 private:
  static constexpr int kDigitBits = 11;
  static constexpr size_t kDigits = (64 + kDigitBits - 1) / kDigitBits;
  using Counts = std::array<uint32_t, size_t{1} << kDigitBits>;  // Slots have 32 bits, too.

  static size_t Digit(uint64_t fence, size_t number) {
    return (fence >> (number * kDigitBits)) % std::tuple_size_v<Counts>;
  }
  void SortByDigit(size_t number);

  PopulatedVector<FenceAndSlot> tokens_;
  PopulatedVector<FenceAndSlot> room_;  // As many, of no meaning, from Sort on.
  std::array<Counts, kDigits> counts_{};
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_FENCE_ORDER_H_
