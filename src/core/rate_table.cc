#include "core/rate_table.h"

#include <utility>

namespace nowcalls::core {
namespace {

bool SameWindow(const Rule& a, const Rule& b) {
  return a.sample_count == b.sample_count && a.window_interval_ms == b.window_interval_ms;
}

// Whether what values have got under one rule of the flow means the same under the other.
bool SameForm(const Rule& a, const Rule& b) {
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

void RateTable::OnNewRule(FlowSlot slot, const Rule& before, const Rule& rule,
                          ledger::CommitBatch* batch) {
  if (Find(slot) == nullptr) return;
  FlowRate& state = *flows_[slot.value];
  if (!SameWindow(before, rule) || !IsSaved(rule)) DropSaved(slot, batch);
  if (!SameWindow(before, rule)) {
    state.window = SlidingWindow(rule.window_interval_ms, rule.sample_count);
  }
  if (!SameForm(before, rule)) values_.Clear(&state.values);
}

void RateTable::Erase(FlowSlot slot, ledger::CommitBatch* batch) {
  if (Find(slot) == nullptr) return;
  DropSaved(slot, batch);
  values_.Clear(&flows_[slot.value]->values);
  flows_[slot.value].reset();
}

void RateTable::Schedule(FlowSlot slot, int64_t due_ms) {
  SavedWindow& saved = flows_[slot.value]->saved;
  if (saved.due_ms <= due_ms) return;
  Unschedule(slot);
  saved.due_ms = due_ms;
  due_.emplace(due_ms, slot);
}

void RateTable::Unschedule(FlowSlot slot) {
  SavedWindow& saved = flows_[slot.value]->saved;
  due_.erase({saved.due_ms, slot});
  saved.due_ms = INT64_MAX;
}

void RateTable::OnPassed(FlowSlot slot, int64_t now_ms, ledger::CommitBatch* batch) {
  if (ending_ && !disk_low_) {
    Save(slot, now_ms, batch);
  } else {
    Schedule(slot, now_ms + kSaveAfterMs);
  }
}

void RateTable::SaveDue(int64_t now_ms, size_t records_max, ledger::CommitBatch* batch) {
  for (size_t records = 0; next_save_ms() <= now_ms && records < records_max;) {
    records += 1 + Save(due_.begin()->second, now_ms, batch);
  }
}

void RateTable::SaveAll(int64_t now_ms, ledger::CommitBatch* batch) {
  ending_ = true;
  if (disk_low_) return;
  std::vector<FlowSlot> slots;
  slots.reserve(due_.size());
  for (const auto& [due_ms, slot] : due_) slots.push_back(slot);
  for (const FlowSlot slot : slots) Save(slot, now_ms, batch);
}

// Returns the number of records.
size_t RateTable::Save(FlowSlot slot, int64_t now_ms, ledger::CommitBatch* batch) {
  FlowRate& state = *flows_[slot.value];
  state.window.Advance(now_ms);
  std::vector<ledger::RateBucket> buckets;
  state.window.ForEach([&](int64_t begin_ms, int64_t passed, int64_t borrowed) {
    if (passed + borrowed == 0) return;
    buckets.push_back({.key = {state.flow, begin_ms}, .passed = passed, .lent = borrowed});
  });
  size_t records = 0;
  auto before = state.saved.buckets.begin();
  const auto drop_before = [&](int64_t begin_ms) {
    for (; before != state.saved.buckets.end() && before->key.begin_ms < begin_ms; ++before) {
      batch->RateDropped(before->key);
      ++records;
    }
  };
  for (const ledger::RateBucket& bucket : buckets) {
    drop_before(bucket.key.begin_ms);
    const bool is_saved = before != state.saved.buckets.end() && before->key == bucket.key;
    if (!is_saved || *before != bucket) {
      batch->RateSet(bucket);
      ++records;
    }
    if (is_saved) ++before;
  }
  drop_before(INT64_MAX);
  state.saved.buckets = std::move(buckets);
  Unschedule(slot);
  if (state.saved.buckets.empty()) return records;
  // When the window has left all of them, and the one that the last has borrowed from.
  const int64_t left_ms =
      state.window.length_ms() * (static_cast<int64_t>(state.window.buckets()) + 1);
  Schedule(slot, state.saved.buckets.back().key.begin_ms + left_ms);
  return records;
}

void RateTable::DropSaved(FlowSlot slot, ledger::CommitBatch* batch) {
  for (const ledger::RateBucket& bucket : flows_[slot.value]->saved.buckets) {
    batch->RateDropped(bucket.key);
  }
  flows_[slot.value]->saved.buckets.clear();
  Unschedule(slot);
}

void RateTable::Load(FlowSlot slot, const Rule& rule, const ledger::RateBucket& bucket, bool come) {
  FlowRate& state = Of(slot, rule);
  // What fits no window is dropped at the first look.
  if (come && IsSaved(rule)) state.window.Restore(bucket.key.begin_ms, bucket.passed, bucket.lent);
  state.saved.buckets.push_back(bucket);
  Schedule(slot, 0);
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
