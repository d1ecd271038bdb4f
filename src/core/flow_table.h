// FlowTable: flows by id, with their rule, their counts and the list of their tokens; and the
// namespaces that own rules and count sessions.
//
// Thread: loop. A flow exists while it has an active rule or live tokens. Slots are stable and
// reused.
#ifndef NOWCALLS_CORE_FLOW_TABLE_H_
#define NOWCALLS_CORE_FLOW_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "base/keyed_hash.h"
#include "core/held_times.h"
#include "core/rule.h"
#include "core/slot_arena.h"
#include "core/slot_table.h"
#include "core/table_sizes.h"
#include "core/token_table.h"
#include "core/wait_queues.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

using NamespaceSlot = uint32_t;
inline constexpr NamespaceSlot kNoNamespace = UINT32_MAX;

// Since the server started.
struct FlowCounters {
  uint64_t granted = 0;  // Also from the queue, also beyond a limit in shadow mode.
  std::array<uint64_t, kEndReasonCount> ended{};           // By EndReason.
  std::array<uint64_t, kRefusedByCount> refused{};         // By RefusedBy.
  std::array<uint64_t, kRefusedByCount> shadow_refused{};  // What shadow mode let pass.
  uint64_t queued = 0;
  uint64_t granted_from_queue = 0;
  int64_t longest_wait_ms = 0;  // Of those that were answered, whatever the answer.
  uint64_t kept = 0;
};

// With a hundred thousand flows each call finds its own far from the processor, so what a call
// needs is in four cache lines, the first two and those of the first counters and of the short held
// times: a copy of what it needs of the rule too. With waiters, or a cap for clients, it is more.
struct alignas(64) Flow {
  int64_t now_calls = 0;  // Sum of count over `tokens`.
  int64_t hold_ms = 0;
  double level_count = 0;  // Of the rule, as the next two: what LevelOf begins with.
  bool level_by_session = false;
  bool shadow = false;
  // The namespace has given the rule up while tokens are out: it grants nothing, its times go on.
  bool removed = false;
  bool draining = false;  // In force, but an administrator has stopped its grants.
  bool to_wake = false;   // In the list of flows whose waiters are to be looked at.
  TokenList tokens;
  NamespaceSlot name_space = kNoNamespace;  // Of the rule.
  FlowId id;

  int64_t resource_timeout_ms = 2000;
  int64_t client_offline_time_ms = 2000;
  std::unique_ptr<Rule> rule;  // Null only while the flow is being made.
  // `now_calls` by session, from when the rule has a cap for clients until it has none and no
  // tokens are out.
  std::unique_ptr<absl::flat_hash_map<SessionSlot, int64_t>> held_by_session;
  WaitQueue waiters;
  // Namespace::levels_changed when waiters at their cap, which may be a share of the level, were
  // last looked at.
  uint64_t levels_seen = 0;

  alignas(64) FlowCounters counters;
  HeldTimes held_times;  // Of the tokens that have ended since the server started.

  bool active() const { return rule != nullptr && !removed; }
};
static_assert(sizeof(Flow) == 1024);
static_assert(offsetof(Flow, waiters.in_line) <= size_t{2} * 64, "see PrefetchAt");

struct Namespace {
  std::string name;
  uint32_t sessions_online = 0;
  uint32_t sessions = 0;              // Online or offline.
  absl::btree_set<int64_t> rule_ids;  // Flow ids of its active rules.
  uint32_t removed_rules = 0;
  // Flow ids of its rules that have waiters and a level that changes with the sessions online.
  absl::btree_set<int64_t> waiting_for_sessions;
  uint64_t levels_changed = 0;  // How often those levels have.
  // Those flows are to be looked at for it, in pieces: behind `wake_after`, and then once more.
  bool to_wake = false;
  bool wake_again = false;
  int64_t wake_after = 0;  // Flow ids begin with 1.
  // Where its active rules come from, as the ledger has it; empty while it has none, or when they
  // were loaded by a server that did not keep their source.
  std::string source;
  std::string claimed_by;  // The source that claimed it in this run; empty: none has.
};

class FlowTable {
 public:
  // `hash_key` spreads flow ids, which are often consecutive. It need not stop those who would
  // choose ids that fall together: they load rules, and so can refuse every call anyway.
  explicit FlowTable(const std::array<uint64_t, 2>& hash_key) : hash_key_(hash_key) {}

  // kNoFlow if there is none.
  FlowSlot Find(FlowId id) const;
  // Whether there are so many that those which a call needs are most often not in a cache.
  bool many() const { return size() >= kTableSizes.many_flows; }
  // That Find, or Prefetch, will be called with this soon.
  void PrefetchPlace(FlowId id) const { slots_.Prefetch(HashOf(id)); }
  // That a token of the flow will be issued or ended soon.
  void Prefetch(FlowId id) const;
  void PrefetchAt(FlowSlot slot) const;
  // The flow, made now if there is none.
  FlowSlot FindOrAdd(FlowId id);
  // With its rule, if it has one. REQUIRES: no tokens.
  void Erase(FlowSlot slot);

  Flow& at(FlowSlot slot) { return flows_[slot]; }
  const Flow& at(FlowSlot slot) const { return flows_[slot]; }
  size_t size() const { return by_id_.size(); }
  // In ascending order of flow id.
  const absl::btree_map<int64_t, FlowSlot>& by_id() const { return by_id_; }

  NamespaceSlot FindNamespace(std::string_view name) const;
  NamespaceSlot FindOrAddNamespace(std::string_view name);
  // Forgets a namespace that has neither sessions nor rules, active or removed, and is not claimed;
  // keeps any other.
  void EraseNamespaceIfUnused(NamespaceSlot slot);
  Namespace& name_space(NamespaceSlot slot) { return namespaces_[slot]; }
  const Namespace& name_space(NamespaceSlot slot) const { return namespaces_[slot]; }
  size_t namespaces() const { return namespace_slots_.size(); }
  // Slots are below this; those that are free have no name.
  size_t namespace_slots() const { return namespaces_.size(); }

  // Active rules over all namespaces.
  size_t rules() const { return rules_; }
  // Makes the rule the active one of the flow.
  void SetRule(FlowSlot slot, NamespaceSlot name_space, const Rule& rule, double timeout_factor);
  // REQUIRES: an active rule.
  void MarkRemoved(FlowSlot slot);

 private:
  uint32_t HashOf(FlowId id) const {
    return static_cast<uint32_t>(MixBits(static_cast<uint64_t>(id.value) ^ hash_key_[0]));
  }
  void CountOut(const Flow& flow);

  const std::array<uint64_t, 2> hash_key_;
  SlotArena<Flow, kTableSizes.flow_chunk> flows_;
  SlotTable slots_;  // By flow id.
  absl::btree_map<int64_t, FlowSlot> by_id_;
  std::deque<Namespace> namespaces_;
  std::vector<NamespaceSlot> free_namespaces_;
  absl::flat_hash_map<std::string, NamespaceSlot> namespace_slots_;
  size_t rules_ = 0;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_FLOW_TABLE_H_
