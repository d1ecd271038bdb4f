#include "core/rate_table.h"

namespace nowcalls::core {

FlowRate& RateTable::Of(FlowSlot slot, const Rule& rule) {
  if (slot.value >= flows_.size()) flows_.resize(slot.value + size_t{1});
  std::unique_ptr<FlowRate>& state = flows_[slot.value];
  if (state == nullptr) {
    state = std::make_unique<FlowRate>(rule);
  } else if (!state->Fits(rule)) {
    const RateCounters counters = state->counters;
    state = std::make_unique<FlowRate>(rule);
    state->counters = counters;
  }
  return *state;
}

const FlowRate* RateTable::Find(FlowSlot slot) const {
  return slot.value < flows_.size() ? flows_[slot.value].get() : nullptr;
}

void RateTable::Erase(FlowSlot slot) {
  if (slot.value < flows_.size()) flows_[slot.value].reset();
}

// A namespace that took over the slot of another may find a second's requests of that one.
SlidingWindow& RateTable::Guard(NamespaceSlot slot) {
  constexpr int64_t kIntervalMs = 1000;
  constexpr int32_t kBuckets = 10;
  if (slot.value >= guards_.size()) guards_.resize(slot.value + size_t{1});
  std::unique_ptr<SlidingWindow>& guard = guards_[slot.value];
  if (guard == nullptr) guard = std::make_unique<SlidingWindow>(kIntervalMs, kBuckets);
  return *guard;
}

}  // namespace nowcalls::core
