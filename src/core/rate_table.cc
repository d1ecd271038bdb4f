#include "core/rate_table.h"

namespace nowcalls::core {
namespace {

bool SameWindow(const Rule& a, const Rule& b) {
  return a.sample_count == b.sample_count && a.window_interval_ms == b.window_interval_ms;
}

// Whether what values have got under one rule means the same under the other.
bool SameForm(const Rule& a, const Rule& b) {
  if (a.param.has_value() != b.param.has_value()) return false;
  if (!a.param.has_value()) return true;
  return a.param->algorithm == b.param->algorithm && SameWindow(a, b);
}

}  // namespace

FlowRate& RateTable::Of(FlowSlot slot, const Rule& rule) {
  if (slot.value >= flows_.size()) flows_.resize(slot.value + size_t{1});
  std::unique_ptr<FlowRate>& state = flows_[slot.value];
  if (state == nullptr) state = std::make_unique<FlowRate>(rule);
  return *state;
}

const FlowRate* RateTable::Find(FlowSlot slot) const {
  return slot.value < flows_.size() ? flows_[slot.value].get() : nullptr;
}

void RateTable::OnNewRule(FlowSlot slot, const Rule& before, const Rule& rule) {
  if (Find(slot) == nullptr) return;
  FlowRate& state = *flows_[slot.value];
  if (!SameWindow(before, rule)) {
    state.window = SlidingWindow(rule.window_interval_ms, rule.sample_count);
  }
  if (!SameForm(before, rule)) values_.Clear(&state.values);
  state.items = ParamItems(rule);
  ++state.values.rule_number;
}

void RateTable::Erase(FlowSlot slot) {
  if (Find(slot) == nullptr) return;
  values_.Clear(&flows_[slot.value]->values);
  flows_[slot.value].reset();
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
