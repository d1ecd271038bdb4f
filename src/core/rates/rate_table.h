// RateTable: calls a second that have passed, of flows, values of parameters and namespaces.
//
// Thread: loop. A flow has a state from its first request until Erase.
#ifndef NOWCALLS_CORE_RATES_RATE_TABLE_H_
#define NOWCALLS_CORE_RATES_RATE_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "core/rates/param_values.h"
#include "core/rates/sliding_window.h"
#include "core/rules/rule.h"
#include "core/tables/slot.h"
#include "ledger/commit_batch.h"
#include "ledger/entities.h"

namespace nowcalls::core {

// Since the server started. Calls, unless named requests; values of one request count once.
struct RateCounters {
  uint64_t passed = 0;    // At once, also beyond the limit in shadow mode.
  uint64_t borrowed = 0;  // Passed, but were told to wait.
  uint64_t blocked = 0;
  uint64_t requests_passed = 0;  // At once or later.
  uint64_t requests_blocked = 0;
};

struct SavedWindow {
  std::vector<ledger::RateBucket> buckets;  // By ascending begin.
  int64_t due_ms = INT64_MAX;               // The next look.
};

struct RateState {  // Of a flow.
  explicit RateState(const Rule& rule)
      : flow(rule.flow_id), window(rule.window_interval_ms, rule.sample_count) {}

  FlowId flow;
  SlidingWindow window;  // Under a rule with a parameter it counts, and limits nothing.
  SavedWindow saved;
  RateCounters counters;
  FlowValues values;  // Of a rule with a parameter.
};

class RateTable {
 public:
  RateTable(const std::array<uint64_t, 2>& hash_key, size_t value_bytes_max)
      : values_(hash_key, value_bytes_max) {}

  // Made if need be. `rule`: in force.
  RateState& Of(FlowSlot slot, const Rule& rule);
  const RateState* Find(FlowSlot slot) const;  // Null: never asked.
  // A window of another form begins anew; others keep what has passed.
  void OnNewRule(FlowSlot slot, const Rule& before, const Rule& rule, ledger::CommitBatch* batch);
  void Erase(FlowSlot slot, ledger::CommitBatch* batch);

  // --- Windows from kSavedMsMin on survive a restart, but for the last kSaveAfterMs. ---
  static bool IsSaved(const Rule& rule) {
    return rule.window_interval_ms >= kSavedMsMin && !rule.param.has_value();
  }
  // REQUIRES: IsSaved.
  void OnPassed(FlowSlot slot, int64_t now_ms, ledger::CommitBatch* batch);
  // Records due windows; about `records_max` records.
  void SaveDue(int64_t now_ms, size_t records_max, ledger::CommitBatch* batch);
  // Later calls are recorded at once.
  void SaveAll(int64_t now_ms, ledger::CommitBatch* batch);
  // While low, nothing is recorded: a restart may grant calls again.
  void SetDiskLow(bool low) { disk_low_ = low; }
  int64_t next_save_ms() const {
    return due_.empty() || disk_low_ ? INT64_MAX : due_.begin()->first;
  }
  // REQUIRES: ascending time. Calls count only if their time has `come`.
  void Load(FlowSlot slot, const Rule& rule, const ledger::RateBucket& bucket, bool come);

  SlidingWindow& Guard(NamespaceSlot slot);  // Requests in the last second.

  ParamValues& values() { return values_; }
  const ParamValues& values() const { return values_; }
  // Erased flows too.
  const RateCounters& totals() const { return totals_; }
  template <typename Change>
  void Count(RateState* rate, Change change) {
    change(&rate->counters);
    change(&totals_);
  }

 private:
  static constexpr int64_t kSavedMsMin = 10'000;
  static constexpr int64_t kSaveAfterMs = 1000;

  void Schedule(FlowSlot slot, int64_t due_ms);
  void Unschedule(FlowSlot slot);
  size_t Save(FlowSlot slot, int64_t now_ms, ledger::CommitBatch* batch);
  void DropSaved(FlowSlot slot, ledger::CommitBatch* batch);

  std::vector<std::unique_ptr<RateState>> flows_;       // By slot.
  std::vector<std::unique_ptr<SlidingWindow>> guards_;  // By slot.
  ParamValues values_;
  RateCounters totals_;
  absl::btree_set<std::pair<int64_t, FlowSlot>> due_;  // SavedWindow::due_ms.
  bool ending_ = false;
  bool disk_low_ = false;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RATES_RATE_TABLE_H_
