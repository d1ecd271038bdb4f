// FlowTable: flows by id and kind (nowcalls/flow_kind.h), their keys, and namespaces.
//
// Thread: loop. A flow exists while it has an active rule or live tokens. Slots are stable and
// reused.
#ifndef NOWCALLS_CORE_TABLES_FLOW_TABLE_H_
#define NOWCALLS_CORE_TABLES_FLOW_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "base/keyed_hash.h"
#include "core/answers.h"
#include "core/rules/param_items.h"
#include "core/rules/rule.h"
#include "core/tables/flow_names.h"
#include "core/tables/key_table.h"
#include "core/tables/lane.h"
#include "core/tables/namespace_guards.h"
#include "core/tables/slot.h"
#include "core/tables/slot_arena.h"
#include "core/tables/slot_table.h"
#include "core/tables/table_sizes.h"
#include "core/tables/time_histogram.h"
#include "core/tables/token_table.h"
#include "nowcalls/call_outcome.h"
#include "nowcalls/flow_kind.h"
#include "nowcalls/status.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

// Of acquires and tokens, of a flow or of all, since the server started.
struct TokenCounters {
  uint64_t granted = 0;  // Also from the queue, also beyond a limit in shadow mode.
  // Acquires under a rule of calls a second; requests for calls a second under another.
  uint64_t other_kind = 0;
  std::array<uint64_t, kEndReasonCount> ended{};           // By EndReason.
  std::array<uint64_t, kRefusedByCount> refused{};         // By RefusedBy.
  std::array<uint64_t, kRuleLimitCount> shadow_refused{};  // What shadow mode let pass.
  uint64_t queued = 0;
  uint64_t granted_from_queue = 0;
  int64_t longest_wait_ms = 0;  // Of those that were answered, whatever the answer.
  uint64_t kept = 0;
  // Releases by CallOutcome, without kOk: those are the rest.
  std::array<uint64_t, kCallOutcomeCount - 1> outcomes{};

  uint64_t& of(CallOutcome outcome) { return outcomes[static_cast<size_t>(outcome) - 1]; }
};

// A plain call needs four cache lines: the first two, the first counters, the short held times.
struct alignas(1024) Flow {  // Never on two pages.
  Lane lane;                 // Of all tokens. Under a rule with a parameter it limits nothing.
  FlowId id;
  int64_t hold_ms = 0;
  bool level_by_session = false;  // Copies of what the rule says, as the next two.
  bool shadow = false;
  bool keyed = false;  // Of kind kValue: each value has a lane of its own.
  // While tokens are out: grants nothing, but its times hold.
  bool removed = false;
  bool draining = false;         // In force, but an administrator has stopped its grants.
  bool says_rate = false;        // The rule says that its count limits calls a second.
  bool told_other_kind = false;  // OtherKind has logged that it is asked for the other kind.
  uint8_t timeout_strategy = 0;  // A copy of what the rule says.
  NamespaceSlot name_space;      // Of the rule.

  alignas(64) TokenList tokens;
  uint32_t rule_number = 0;  // How many rules the flow has had.
  uint32_t keys = 0;         // In KeyTable, of this flow.
  int64_t resource_timeout_ms = 2000;
  int64_t client_offline_time_ms = 2000;
  int64_t max_hold_ms = 0;     // 0: no bound. See HoldEndMs.
  std::unique_ptr<Rule> rule;  // Null only while the flow is being made.
  // nowCalls by session; null before the first cap, and without cap and tokens.
  std::unique_ptr<absl::flat_hash_map<SessionSlot, int64_t>> held_by_session;

  alignas(64) TokenCounters counters;
  TimeHistogram held_times;  // Of the tokens that have ended since the server started.
  // Of answered waits, whatever the answer; null before the first.
  std::unique_ptr<TimeHistogram> waited_times;

  FlowKey key() const { return {id, FlowKindIf(keyed)}; }
  TokenTerms terms() const {
    return {timeout_strategy, resource_timeout_ms, client_offline_time_ms};
  }
  bool active() const { return rule != nullptr && !removed; }
  // With all keeps; INT64_MAX: no bound.
  int64_t HoldEndMs(int64_t issued_ms) const {
    return max_hold_ms == 0 ? INT64_MAX : issued_ms + max_hold_ms;
  }
};
static_assert(sizeof(Flow) == 1024);
static_assert(offsetof(Flow, counters) == size_t{2} * 64, "see PrefetchAt");

// Loads of a namespace's rules in this run.
struct RuleLoads {
  int64_t loaded_ms = 0;   // When a set came into force; 0: none has.
  uint64_t warnings = 0;   // About the set in force (ParsedRules::warnings).
  int64_t refused_ms = 0;  // When a later one was refused, the last time; 0: none was.
  std::string refusal{};   // Why.
};

struct Namespace {
  std::string name;
  uint32_t number = 0;  // Of no other one, nor of one that was erased.
  uint32_t sessions_online = 0;
  uint32_t sessions = 0;               // Online or offline.
  absl::btree_set<FlowKey> rule_keys;  // Flows of its active rules.
  uint32_t removed_rules = 0;
  // Lanes with waiters and a level by sessions.
  using FlowAndKey = std::pair<FlowKey, KeySlot>;
  absl::btree_set<FlowAndKey> waiting_for_sessions;
  uint64_t levels_changed = 0;  // How often the levels of these lanes have changed.
  // In the wake list. The walk continues behind `wake_after`; if `wake_again`, it begins once more.
  bool to_wake = false;
  bool wake_again = false;
  FlowAndKey wake_after{FlowKey{}, kNoKey};  // Flow ids begin with 1.
  // The source of its active rules in the ledger; empty: none is recorded.
  std::string source;
  std::string claimed_by;  // The source that claimed it in this run; empty: none has.
  RuleLoads loads;
  uint32_t guard = 0;  // NamespaceGuards::Of its name.
};

class FlowTable {
 public:
  explicit FlowTable(const std::array<uint64_t, 2>& hash_key)
      : hash_key_(hash_key), keys_(hash_key), names_(hash_key) {}

  FlowSlot Find(const FlowKey& key) const;
  const FlowNames& names() const { return names_; }  // See ForEachNamed.
  // Before Find and Prefetch.
  void PrefetchPlace(FlowId id) const { slots_.Prefetch(HashOf(id)); }
  // For a token's issue or end.
  void Prefetch(FlowId id) const;
  void PrefetchAt(FlowSlot slot) const;
  FlowSlot FindOrAdd(const FlowKey& key);
  // With its rule. REQUIRES: no tokens, no keys.
  void Erase(FlowSlot slot);

  Flow& at(FlowSlot slot) { return flows_[slot]; }
  const Flow& at(FlowSlot slot) const { return flows_[slot]; }
  size_t size() const { return by_key_.size(); }
  KeyTable& keys() { return keys_; }
  const KeyTable& keys() const { return keys_; }
  Lane& lane(const LaneRef& ref) {
    return ref.key_slot == kNoKey ? at(ref.flow_slot).lane : keys_.at(ref.key_slot).lane;
  }
  const Lane& lane(const LaneRef& ref) const { return LaneOf(at(ref.flow_slot), ref.key_slot); }
  const Lane& LaneOf(const Flow& flow, KeySlot key) const {
    return key == kNoKey ? flow.lane : keys_.at(key).lane;
  }
  // By id, the rule of the flow before that by value.
  const absl::btree_map<FlowKey, FlowSlot>& by_key() const { return by_key_; }

  NamespaceSlot FindNamespace(std::string_view name) const;
  NamespaceSlot FindOrAddNamespace(std::string_view name);
  // For present and later namespaces.
  void SetGuards(NamespaceGuards guards);
  // Unused: without sessions, rules (active or removed) and claim.
  void EraseNamespaceIfUnused(NamespaceSlot slot);
  Namespace& name_space(NamespaceSlot slot) { return namespaces_[slot]; }
  const Namespace& name_space(NamespaceSlot slot) const { return namespaces_[slot]; }
  size_t namespaces() const { return namespace_slots_.size(); }
  // A bound of slots; free ones have no name.
  uint32_t namespace_slots() const { return namespaces_.used(); }

  // Calls at once in the lane; 0 without an active rule. Of a flow with a parameter: of a value
  // without an item.
  int64_t LevelOf(const LaneRef& ref) const { return LevelOf(at(ref.flow_slot), ref.key_slot); }
  int64_t LevelOf(const Flow& flow, KeySlot key) const {
    if (!flow.active()) return 0;
    if (key == kNoKey) return Shared(flow, flow.lane.level_count);
    const Key& of_value = keys_.at(key);
    if (of_value.rule_number == flow.rule_number) return Shared(flow, of_value.lane.level_count);
    return Shared(flow, CountOf(*flow.rule, of_value.value.view()));
  }
  // Of a value, with or without a key.
  int64_t LevelOfValue(FlowSlot slot, const Param& value) const {
    const Flow& flow = at(slot);
    return flow.active() ? Shared(flow, CountOf(*flow.rule, value)) : 0;
  }
  // Calls that a session may hold, at least 1; INT64_MAX without a cap.
  int64_t CapOf(const Flow& flow) const;
  // May be negative.
  int64_t CapLeft(const Flow& flow, SessionSlot session) const {
    if (flow.held_by_session == nullptr || !flow.rule->capped()) return INT64_MAX;
    const auto held = flow.held_by_session->find(session);
    return CapOf(flow) - (held == flow.held_by_session->end() ? 0 : held->second);
  }

  // Counts of the flow, and of all flows.
  template <typename Change>
  void Count(Flow* flow, Change change) {
    change(&flow->counters);
    change(&totals_);
  }
  // Erased flows too.
  const TokenCounters& totals() const { return totals_; }

  // Active ones.
  size_t rules() const { return rules_; }
  // REQUIRES: the rule has the flow's id and kind, and sorted items.
  void SetRule(FlowSlot slot, NamespaceSlot name_space, const Rule& rule, double timeout_factor);
  // REQUIRES: an active rule.
  void MarkRemoved(FlowSlot slot);
  // The value's key, refreshed. It needs a token or a waiter, else EraseKeyIfUnused.
  KeySlot FindOrAddKey(FlowSlot slot, const Param& value);
  void EraseKeyIfUnused(KeySlot slot);
  // Takes the value's count from the rule, if that has changed.
  void RefreshKey(KeySlot slot);

 private:
  // One hash for both flows of an id: the look-ahead does not know the kind.
  uint32_t HashOf(FlowId id) const {
    return static_cast<uint32_t>(MixBits(static_cast<uint64_t>(id.value) ^ hash_key_[0]));
  }
  // The flow's rule, if it has one, enters or leaves the sums of its namespace and the names.
  void CountRule(FlowSlot slot, bool in);
  int64_t Shared(const Flow& flow, double count) const {
    if (flow.level_by_session) count *= name_space(flow.name_space).sessions_online;
    return WholeCalls(count);
  }

  const std::array<uint64_t, 2> hash_key_;
  SlotArena<FlowSlot, Flow, kTableSizes.flow_chunk> flows_;
  SlotTable<FlowSlot> slots_;  // By flow id.
  KeyTable keys_;
  FlowNames names_;
  absl::btree_map<FlowKey, FlowSlot> by_key_;
  SlotArena<NamespaceSlot, Namespace, 16> namespaces_;
  absl::flat_hash_map<std::string, NamespaceSlot> namespace_slots_;
  uint32_t last_namespace_number_ = 0;
  NamespaceGuards guards_;
  size_t rules_ = 0;
  TokenCounters totals_;
};

// Calls visit(slot) for each flow with this resource in the namespace, until it returns false.
template <typename Visit>
void ForEachNamed(const FlowTable& flows, NamespaceSlot name_space, const FlowName& name,
                  Visit visit) {
  flows.names().ForEachIn(name_space, name, [&](FlowSlot slot) {
    return flows.at(slot).rule->resource != name.resource || visit(slot);
  });
}
// In all namespaces.
template <typename Visit>
void ForEachNamed(const FlowTable& flows, const FlowName& name, Visit visit) {
  flows.names().ForEach(name, [&](FlowSlot slot) {
    return flows.at(slot).rule->resource != name.resource || visit(slot);
  });
}

// Counts a refusal, and answers it.
AcquireAnswer CountRefusal(FlowTable* flows, const LaneRef& lane, TokenStatus status,
                           RefusedBy limit);

// A call's flow is mostly in no cache.
inline bool AreMany(const FlowTable& flows) { return flows.size() >= kTableSizes.many_flows; }

// The chosen flows that exist: at most two, the rule of the flow first.
std::vector<FlowSlot> FindAll(const FlowTable& flows, const FlowChoice& choice);

// kInvalidArgument: a choice without a kind has flows of two namespaces.
Status CheckOneNamespace(const FlowTable& flows, const FlowChoice& choice);

// The id's flow of the other kind, if that has an active rule; else kNoFlow.
inline FlowSlot FindOther(const FlowTable& flows, const FlowKey& key) {
  const FlowSlot slot = flows.Find({key.id, OtherThan(key.kind)});
  return slot != kNoFlow && flows.at(slot).active() ? slot : kNoFlow;
}

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TABLES_FLOW_TABLE_H_
