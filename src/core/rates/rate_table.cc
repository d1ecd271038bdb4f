#include "core/rates/rate_table.h"

#include <utility>

namespace nowcalls::core {
namespace {

bool SameWindow(const Rule& a, const Rule& b) {
  return a.sample_count == b.sample_count && a.window_interval_ms == b.window_interval_ms;
}

// Whether the calls of values mean the same under both rules of the flow.
bool SameForm(const Rule& a, const Rule& b) {
  if (!a.param.has_value()) return true;
  return a.param->algorithm == b.param->algorithm && SameWindow(a, b);
}

}  // namespace

RateState& RateTable::Of(FlowSlot slot, const Rule& rule) {
  if (slot.value >= flows_.size()) flows_.resize(slot.value + size_t{1});
  std::unique_ptr<RateState>& state = flows_[slot.value];
  if (state == nullptr) state = std::make_unique<RateState>(rule);
  return *state;
}

const RateState* RateTable::Find(FlowSlot slot) const {
  return slot.value < flows_.size() ? flows_[slot.value].get() : nullptr;
}

void RateTable::OnNewRule(FlowSlot slot, const Rule& before, const Rule& rule,
                          ledger::CommitBatch* batch) {
  if (Find(slot) == nullptr) return;
  RateState& state = *flows_[slot.value];
  // Buckets of another form, or of a rule that is no longer saved, leave the ledger first.
  if (!SameWindow(before, rule) || !IsSaved(rule)) DropSaved(slot, batch);
  if (!SameWindow(before, rule)) {
    state.window = SlidingWindow(rule.window_interval_ms, rule.sample_count);
  }
  if (!SameForm(before, rule)) values_.Clear(&state.values);
}

void RateTable::Erase(FlowSlot slot, ledger::CommitBatch* batch) {
  if (Find(slot) == nullptr) return;
  // The records go in the batch that erases the flow.
  DropSaved(slot, batch);
  values_.Clear(&flows_[slot.value]->values);
  flows_[slot.value].reset();
}

void RateTable::Schedule(FlowSlot slot, int64_t due_ms) {
  SavedWindow& saved = flows_[slot.value]->saved;
  // A window that is due earlier keeps its time, so busy flows are saved once a second.
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
  // After SaveAll no later save is sure to come.
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
  // A copy: each save changes the order of due windows.
  slots.reserve(due_.size());
  for (const auto& [due_ms, slot] : due_) slots.push_back(slot);
  for (const FlowSlot slot : slots) Save(slot, now_ms, batch);
}

// Records the difference of the window from the ledger's copy; returns the number of records. Both
// lists are by ascending begin, so one pass merges them.
size_t RateTable::Save(FlowSlot slot, int64_t now_ms, ledger::CommitBatch* batch) {
  RateState& state = *flows_[slot.value];
  state.window.Advance(now_ms);
  std::vector<ledger::RateBucket> buckets;
  state.window.ForEach([&](int64_t begin_ms, int64_t passed, int64_t borrowed) {
    if (passed + borrowed == 0) return;
    buckets.push_back({.key = {state.flow, begin_ms}, .passed = passed, .lent = borrowed});
  });
  size_t records = 0;
  // Buckets that the window left, or that are empty now, are dropped.
  auto before = state.saved.buckets.begin();
  const auto drop_before = [&](int64_t begin_ms) {
    for (; before != state.saved.buckets.end() && before->key.begin_ms < begin_ms; ++before) {
      batch->RateDropped(before->key);
      ++records;
    }
  };
  for (const ledger::RateBucket& bucket : buckets) {
    drop_before(bucket.key.begin_ms);
    // New and changed buckets are put; equal ones cost nothing.
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
  // Saved buckets need another look, to be dropped, although no call may come.
  if (state.saved.buckets.empty()) return records;
  // Then the window has left all buckets, and the one that the last has borrowed from.
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
  RateState& state = Of(slot, rule);
  // A bucket that fits no window, or whose time has not come, counts nothing. The save that is due
  // at once drops it.
  if (come && IsSaved(rule)) state.window.Restore(bucket.key.begin_ms, bucket.passed, bucket.lent);
  state.saved.buckets.push_back(bucket);
  Schedule(slot, 0);
}

// A namespace in the slot of an erased one may find the requests of its last second.
SlidingWindow& RateTable::Guard(NamespaceSlot slot) {
  constexpr int64_t kIntervalMs = 1000;
  constexpr int32_t kBuckets = 10;
  if (slot.value >= guards_.size()) guards_.resize(slot.value + size_t{1});
  std::unique_ptr<SlidingWindow>& guard = guards_[slot.value];
  if (guard == nullptr) guard = std::make_unique<SlidingWindow>(kIntervalMs, kBuckets);
  return *guard;
}

}  // namespace nowcalls::core
