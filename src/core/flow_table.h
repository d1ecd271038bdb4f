// FlowTable: flows by id and kind, with their rule, their lane and the list of their tokens; their
// keys, and the namespaces that own rules and count sessions.
//
// Thread: loop. A flow id has at most two flows, one of each kind (nowcalls/flow_kind.h): that of
// its rule of the flow and that of its rule by value. Only those who have an id ask for the kind;
// behind a slot the two have nothing in common. A flow exists while it has an active rule or live
// tokens. Slots are stable and reused.
#ifndef NOWCALLS_CORE_FLOW_TABLE_H_
#define NOWCALLS_CORE_FLOW_TABLE_H_

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
#include "core/key_table.h"
#include "core/lane.h"
#include "core/namespace_guards.h"
#include "core/rules/param_items.h"
#include "core/rules/rule.h"
#include "core/slot.h"
#include "core/slot_arena.h"
#include "core/slot_table.h"
#include "core/table_sizes.h"
#include "core/time_histogram.h"
#include "core/token_table.h"
#include "nowcalls/call_outcome.h"
#include "nowcalls/flow_kind.h"
#include "nowcalls/status.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

// Since the server started.
struct FlowCounters {
  uint64_t granted = 0;  // Also from the queue, also beyond a limit in shadow mode.
  // Acquires of a rule that says calls a second, or requests for calls a second of any other.
  uint64_t other_kind = 0;
  std::array<uint64_t, kEndReasonCount> ended{};           // By EndReason.
  std::array<uint64_t, kRefusedByCount> refused{};         // By RefusedBy.
  std::array<uint64_t, kRuleLimitCount> shadow_refused{};  // What shadow mode let pass.
  uint64_t queued = 0;
  uint64_t granted_from_queue = 0;
  int64_t longest_wait_ms = 0;  // Of those that were answered, whatever the answer.
  uint64_t kept = 0;
  // Of releases, by CallOutcome. Those that ended well, kOk, are not counted: they are the others.
  std::array<uint64_t, kCallOutcomeCount - 1> outcomes{};

  uint64_t& of(CallOutcome outcome) { return outcomes[static_cast<size_t>(outcome) - 1]; }
};

// With a hundred thousand flows, a call's flow is most often in no cache. So all that a plain call
// needs lies in four cache lines: the first two, that of the first counters and that of the short
// held times. Waiters, a cap for clients, or a key need more lines.
struct alignas(1024) Flow {  // So that none lies on two pages.
  Lane lane;                 // Of all tokens. Under a rule with a parameter it limits nothing.
  FlowId id;
  int64_t hold_ms = 0;
  bool level_by_session = false;  // Copies of what the rule says, as the next two.
  bool shadow = false;
  bool keyed = false;  // Of kind kValue: each value has a lane of its own.
  // The namespace has given the rule up while tokens are out. It grants nothing; its times hold.
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
  // nowCalls by session. Null until the rule has a cap for clients; then kept until the rule has no
  // cap and no tokens are out.
  std::unique_ptr<absl::flat_hash_map<SessionSlot, int64_t>> held_by_session;

  alignas(64) FlowCounters counters;
  TimeHistogram held_times;  // Of the tokens that have ended since the server started.
  // Of the waits that were answered since then, whatever the answer. Null before the first.
  std::unique_ptr<TimeHistogram> waited_times;

  FlowKey key() const { return {id, FlowKindIf(keyed)}; }
  TokenTerms terms() const {
    return {timeout_strategy, resource_timeout_ms, client_offline_time_ms};
  }
  bool active() const { return rule != nullptr && !removed; }
  // When a token's longest hold is over, whatever is kept; INT64_MAX without a bound.
  int64_t HoldEndMs(int64_t issued_ms) const {
    return max_hold_ms == 0 ? INT64_MAX : issued_ms + max_hold_ms;
  }
};
static_assert(sizeof(Flow) == 1024);
static_assert(offsetof(Flow, counters) == size_t{2} * 64, "see PrefetchAt");

// How the last loads of a namespace's rules went, in this run of the server.
struct RuleLoads {
  int64_t loaded_ms = 0;   // When a set came into force; 0: none has.
  uint64_t warnings = 0;   // About the set in force (ParsedRules::warnings).
  int64_t refused_ms = 0;  // When a later one was refused, the last time; 0: none was.
  std::string refusal{};   // Why.
};

struct Namespace {
  std::string name;
  uint32_t sessions_online = 0;
  uint32_t sessions = 0;               // Online or offline.
  absl::btree_set<FlowKey> rule_keys;  // Flows of its active rules.
  uint32_t removed_rules = 0;
  // Lanes that have waiters and a level that changes with the sessions online, by flow.
  using FlowAndKey = std::pair<FlowKey, KeySlot>;
  absl::btree_set<FlowAndKey> waiting_for_sessions;
  uint64_t levels_changed = 0;  // How often the levels of these lanes have changed.
  // In the wake list: its lanes are looked at in pieces, from behind `wake_after` on. `wake_again`:
  // and once more from the first.
  bool to_wake = false;
  bool wake_again = false;
  FlowAndKey wake_after{FlowKey{}, kNoKey};  // Flow ids begin with 1.
  // The source of its active rules, as the ledger has it. Empty without rules, or when a version of
  // the server loaded them that did not record the source.
  std::string source;
  std::string claimed_by;  // The source that claimed it in this run; empty: none has.
  RuleLoads loads;
  uint32_t guard = 0;  // NamespaceGuards::Of its name.
};

class FlowTable {
 public:
  // `hash_key` spreads flow ids, which are often consecutive. It need not stop a peer from choosing
  // ids that collide: whoever loads rules can refuse every call anyway.
  explicit FlowTable(const std::array<uint64_t, 2>& hash_key)
      : hash_key_(hash_key), keys_(hash_key) {}

  // kNoFlow if there is none.
  FlowSlot Find(const FlowKey& key) const;
  // Those that exist: two at most, the rule of the flow first.
  std::vector<FlowSlot> FindAll(const FlowChoice& choice) const;
  // Whether a call's flow is most often in no cache.
  bool many() const { return size() >= kTableSizes.many_flows; }
  // Begins to load what Find, or Prefetch, will look at soon.
  void PrefetchPlace(FlowId id) const { slots_.Prefetch(HashOf(id)); }
  // Begins to load what the issue or end of a token of the flow will touch soon.
  void Prefetch(FlowId id) const;
  void PrefetchAt(FlowSlot slot) const;
  // The flow, made now if there is none.
  FlowSlot FindOrAdd(const FlowKey& key);
  // Erases the flow, with its rule if it has one. REQUIRES: no tokens.
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
  // In ascending order of flow id, the rule of the flow before that by value.
  const absl::btree_map<FlowKey, FlowSlot>& by_key() const { return by_key_; }

  NamespaceSlot FindNamespace(std::string_view name) const;
  NamespaceSlot FindOrAddNamespace(std::string_view name);
  // For the namespaces that are there, and those to come.
  void SetGuards(NamespaceGuards guards);
  // Forgets a namespace that has neither sessions nor rules, active or removed, and is not claimed;
  // keeps any other.
  void EraseNamespaceIfUnused(NamespaceSlot slot);
  Namespace& name_space(NamespaceSlot slot) { return namespaces_[slot]; }
  const Namespace& name_space(NamespaceSlot slot) const { return namespaces_[slot]; }
  size_t namespaces() const { return namespace_slots_.size(); }
  // The values of namespace slots are below this; free ones have no name.
  uint32_t namespace_slots() const { return namespaces_.used(); }

  // The level: how many calls the active rule allows at once in the lane; 0 without one. Of a flow
  // with a parameter it is that of each value without an item of its own.
  int64_t LevelOf(const LaneRef& ref) const { return LevelOf(at(ref.flow_slot), ref.key_slot); }
  int64_t LevelOf(const Flow& flow, KeySlot key) const {
    if (!flow.active()) return 0;
    return Shared(flow, key == kNoKey ? flow.lane.level_count : CountOf(flow, key));
  }
  // The level of a value of the flow's parameter, whether it has a key or not.
  int64_t LevelOfValue(FlowSlot slot, const Param& value) const {
    const Flow& flow = at(slot);
    return flow.active() ? Shared(flow, core::CountOf(*flow.rule, value)) : 0;
  }
  // How many calls one session may hold; INT64_MAX if the rule has no cap for clients.
  int64_t CapOf(const Flow& flow) const;
  // What the session may be granted until it is at its cap; INT64_MAX without a cap.
  int64_t CapLeft(const Flow& flow, SessionSlot session) const {
    if (flow.held_by_session == nullptr || !flow.rule->capped()) return INT64_MAX;
    const auto held = flow.held_by_session->find(session);
    return CapOf(flow) - (held == flow.held_by_session->end() ? 0 : held->second);
  }

  // Active rules over all namespaces.
  size_t rules() const { return rules_; }
  // Makes the rule the active one of the flow. REQUIRES: it is of the flow's id and kind.
  void SetRule(FlowSlot slot, NamespaceSlot name_space, const Rule& rule, double timeout_factor);
  // REQUIRES: an active rule.
  void MarkRemoved(FlowSlot slot);
  // The key of the value, made now if there is none, with the count that the flow's rule gives it.
  // It then gets a token or a waiter, else the caller calls EraseKeyIfUnused.
  KeySlot FindOrAddKey(FlowSlot slot, const Param& value);
  // Erases the key unless it has a token or a waiter.
  void EraseKeyIfUnused(KeySlot slot);
  // What the flow's rule says of the key's value is taken from the rule again, if that has changed.
  void RefreshKey(KeySlot slot);

 private:
  // Both flows of an id have one hash, so that what is loaded ahead needs no kind.
  uint32_t HashOf(FlowId id) const {
    return static_cast<uint32_t>(MixBits(static_cast<uint64_t>(id.value) ^ hash_key_[0]));
  }
  void CountOut(const Flow& flow);
  int64_t Shared(const Flow& flow, double count) const {
    if (flow.level_by_session) count *= name_space(flow.name_space).sessions_online;
    return WholeCalls(count);
  }
  // What the rule says of the key's value, from its copy if that is of this rule.
  double CountOf(const Flow& flow, KeySlot slot) const {
    const Key& key = keys_.at(slot);
    return key.rule_number == flow.rule_number ? key.lane.level_count
                                               : core::CountOf(*flow.rule, key.value.view());
  }

  const std::array<uint64_t, 2> hash_key_;
  SlotArena<FlowSlot, Flow, kTableSizes.flow_chunk> flows_;
  SlotTable<FlowSlot> slots_;  // By flow id.
  KeyTable keys_;
  absl::btree_map<FlowKey, FlowSlot> by_key_;
  SlotArena<NamespaceSlot, Namespace, 16> namespaces_;
  absl::flat_hash_map<std::string, NamespaceSlot> namespace_slots_;
  NamespaceGuards guards_;
  size_t rules_ = 0;
};

// kInvalidArgument: the choice names no kind, and the id's two flows are of two namespaces, so that
// whoever means the one would act on the other's.
Status CheckOneNamespace(const FlowTable& flows, const FlowChoice& choice);

// The id's flow of the other kind, if that has an active rule; else kNoFlow.
inline FlowSlot FindOther(const FlowTable& flows, const FlowKey& key) {
  const FlowSlot slot = flows.Find({key.id, OtherThan(key.kind)});
  return slot != kNoFlow && flows.at(slot).active() ? slot : kNoFlow;
}

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_FLOW_TABLE_H_
