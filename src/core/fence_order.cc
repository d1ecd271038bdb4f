#include "core/fence_order.h"

#include <algorithm>
#include <numeric>

namespace nowcalls::core {

void FenceOrder::Reserve(size_t tokens) {
  tokens_.reserve(tokens);
  room_.reserve(tokens);
}

// Counts the digits here: the caller waits for the disk anyway.
void FenceOrder::Add(uint64_t fence, TokenSlot slot) {
  tokens_.emplace_back(fence, slot);
  for (size_t number = 0; number < kDigits; ++number) ++counts_[number][Digit(fence, number)];
}

const PopulatedVector<FenceAndSlot>& FenceOrder::Sort() {
  room_.resize(tokens_.size());
  for (size_t number = 0; number < kDigits && !tokens_.empty(); ++number) {
    // A digit that all fences share needs no pass: mostly the high ones.
    const uint32_t alike = counts_[number][Digit(tokens_[0].first, number)];
    if (alike < tokens_.size()) SortByDigit(number);
  }
  return tokens_;
}

void FenceOrder::SortByDigit(size_t number) {
  // The counts become the first place of each digit. Passes are stable, so lower digits stay
  // sorted.
  Counts& places = counts_[number];
  std::exclusive_scan(places.begin(), places.end(), places.begin(), uint32_t{0});
  for (const FenceAndSlot& token : tokens_) room_[places[Digit(token.first, number)]++] = token;
  tokens_.swap(room_);
}

}  // namespace nowcalls::core
