// Rules: a namespace's set is replaced as a whole or not at all.
#include <algorithm>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/counted.h"
#include "base/text.h"
#include "core/core.h"
#include "core/rule_json.h"

namespace nowcalls::core {
namespace {

std::string InNamespace(std::string_view name_space) {
  return "namespace " + std::string(name_space) + ": ";
}

std::string FlowIdOf(const RuleSet& set, const Rule& rule) {
  return InNamespace(set.name_space) + "rule of resource " + Quoted(rule.resource) +
         ": clusterConfig.flowId " + std::to_string(rule.flow_id.value);
}

}  // namespace

Status Core::ReplaceRules(const Turn& turn, const std::vector<RuleSet>& sets) {
  RuleSetRefs refs;
  for (const RuleSet& set : sets) refs.push_back(&set);
  return ReplaceRules(turn, refs);
}

Status Core::ReplaceRules(const Turn& turn, const RuleSetRefs& sets) {
  const Waking waking(this, turn);
  for (const RuleSet* set : sets) {
    NOWCALLS_RETURN_IF_ERROR(CheckNamespace(set->name_space).WithContext("namespace"));
  }
  NOWCALLS_RETURN_IF_ERROR(CheckSources(sets));
  NOWCALLS_RETURN_IF_ERROR(CheckFlowOwners(sets));
  absl::flat_hash_set<int64_t> wanted;
  for (const RuleSet* set : sets) {
    for (const Rule& rule : set->parsed.rules) wanted.insert(rule.flow_id.value);
  }
  NOWCALLS_RETURN_IF_ERROR(CheckRuleLimits(sets, wanted));
  const uint64_t bytes = disk_low_ ? RoomForRules(sets) : 0;
  NOWCALLS_RETURN_IF_ERROR(CheckRoomForRules(bytes));
  rule_bytes_while_low_ += bytes;

  // All removals come first, so that there is room; a flow that is in the set of another namespace
  // is not removed, but moves there with all that belongs to it.
  std::vector<std::string> sources;
  for (const RuleSet* set : sets) sources.push_back(SourceOf(set->name_space));
  std::vector<size_t> removed;
  removed.reserve(sets.size());
  for (const RuleSet* set : sets) removed.push_back(RemoveRulesNotIn(turn, *set, wanted));
  int64_t lowered_ms = kNotScheduled;
  for (size_t i = 0; i < sets.size(); ++i) {
    const RuleSet& set = *sets[i];
    const NamespaceSlot space = flows_.FindOrAddNamespace(set.name_space);
    size_t changed = 0;
    for (const Rule& rule : set.parsed.rules) {
      changed += InstallRule(turn, space, rule, &lowered_ms) ? 1 : 0;
    }
    flows_.EraseNamespaceIfUnused(space);
    const bool moved = RecordSource(turn, set, sources[i]);
    const bool changes = changed > 0 || removed[i] > 0 || moved;
    set_changes_ += changes ? 1 : 0;
    if (changes || set.source != kRpcRuleSource) NoteSet(set, changed, removed[i]);
  }
  if (lowered_ms != kNotScheduled) LowerOfflineTime(lowered_ms);
  return {};
}

void Core::NoteSet(const RuleSet& set, size_t changed, size_t removed) {
  const size_t rules = set.parsed.rules.size();
  const std::string in = InNamespace(set.name_space);
  std::string text = in + std::to_string(rules) + (rules == 1 ? " rule, " : " rules, ") +
                     std::to_string(changed) + " new or changed, " + std::to_string(removed) +
                     " removed, " + std::to_string(set.parsed.skipped.count()) + " skipped";
  if (changed + removed > 0) {
    Note(false, std::move(text));
  } else {
    NoteIfRoom(false, std::move(text));
  }
  for (const std::string& remark : set.parsed.Remarks()) NoteIfRoom(true, in + remark);
}

// No flow may be in two sets, nor in the set of a namespace that keeps its rules.
Status Core::CheckFlowOwners(const RuleSetRefs& sets) const {
  absl::flat_hash_set<std::string> replaced;
  for (const RuleSet* set : sets) {
    if (!replaced.insert(set->name_space).second) {
      return Status::InvalidArgument(InNamespace(set->name_space) + "is given two sets of rules");
    }
  }
  absl::flat_hash_map<int64_t, const RuleSet*> owners;
  for (const RuleSet* set : sets) {
    for (const Rule& rule : set->parsed.rules) {
      const auto [owner, is_new] = owners.emplace(rule.flow_id.value, set);
      if (!is_new) {
        return Status::InvalidArgument(FlowIdOf(*set, rule) + " is also in the set of namespace " +
                                       owner->second->name_space);
      }
      const FlowSlot slot = flows_.Find(rule.flow_id);
      if (slot == kNoFlow || !flows_.at(slot).active()) continue;
      const std::string& name = flows_.name_space(flows_.at(slot).name_space).name;
      if (replaced.contains(name)) continue;
      return Status::AlreadyExists(FlowIdOf(*set, rule) + " belongs to namespace " + name +
                                   "; flow ids are unique across namespaces (to move it, load a "
                                   "set without it there first, such as []; to give a namespace "
                                   "another name, configure both, the old one with [])");
    }
  }
  return {};
}

Status Core::CheckRuleLimits(const RuleSetRefs& sets,
                             const absl::flat_hash_set<int64_t>& wanted) const {
  size_t namespaces = flows_.namespaces();
  size_t rules = flows_.rules();
  for (const RuleSet* set : sets) {
    const NamespaceSlot space = flows_.FindNamespace(set->name_space);
    if (space == kNoNamespace) {
      ++namespaces;
    } else {
      rules -= flows_.name_space(space).rule_ids.size();
    }
    rules += set->parsed.rules.size();
  }
  if (namespaces > std::max<size_t>(flows_.namespaces(), options_.limits.namespaces_max)) {
    return Status::ResourceExhausted(
        "the set would make " + std::to_string(namespaces) + " namespaces; at most " +
        std::to_string(options_.limits.namespaces_max) + " are allowed (namespaces_max)");
  }
  if (rules > options_.limits.rules_max) {
    return Status::ResourceExhausted(
        "the set would make " + std::to_string(rules) + " rules; at most " +
        std::to_string(options_.limits.rules_max) + " are allowed (rules_max)");
  }
  return CheckFlowLimit(sets, wanted, rules);
}

// Flows of removed rules count, or sets of ever new flow ids, with a token of each, would gather
// flows without end. A set without new ids makes no flow more and always passes: it may be what
// puts an end to grants, or makes room later. `rules`: in force with these sets.
Status Core::CheckFlowLimit(const RuleSetRefs& sets, const absl::flat_hash_set<int64_t>& wanted,
                            size_t rules) const {
  const size_t fresh = std::count_if(wanted.begin(), wanted.end(), [this](int64_t id) {
    return flows_.Find(FlowId{id}) == kNoFlow;
  });
  const uint64_t flows_max = options_.limits.flows_max();
  size_t flows = flows_.size() + fresh;
  if (fresh == 0 || flows <= flows_max) return {};
  for (const RuleSet* set : sets) {
    const NamespaceSlot space = flows_.FindNamespace(set->name_space);
    if (space == kNoNamespace) continue;
    for (const int64_t id : flows_.name_space(space).rule_ids) {
      const bool stays = wanted.contains(id) || flows_.at(flows_.Find(FlowId{id})).tokens.size > 0;
      if (!stays) --flows;
    }
  }
  if (flows > flows_max) {
    return Status::ResourceExhausted(
        "the set would make " + std::to_string(flows) + " flows, " + std::to_string(flows - rules) +
        " of them of removed rules with tokens out; at most " + std::to_string(flows_max) +
        " are allowed (flows_max): wait for those tokens to end, or take them back "
        "(nowcalls-admin purge)");
  }
  return {};
}

void Core::SetDiskLow(bool low) {
  if (low != disk_low_) rule_bytes_while_low_ = 0;
  disk_low_ = low;
}

// While the ledger's disk is nearly full, what comes over the network may take so much of it and no
// more. Rules of files are as many as the operator wrote there; removals make room in the end.
Status Core::CheckRoomForRules(uint64_t bytes) const {
  const uint64_t bytes_max = options_.limits.rule_bytes_while_disk_low_max;
  if (!disk_low_ || bytes == 0 || rule_bytes_while_low_ + bytes <= bytes_max) return {};
  return Status::ResourceExhausted(
      "the disk of the ledger is nearly full (disk_free_low_bytes), and since it is, rules may "
      "take " +
      std::to_string(bytes_max) +
      " bytes of it: until there is room they can be removed, but not be more or change");
}

// What the sets that come over the network would write: rules that are new or change.
uint64_t Core::RoomForRules(const RuleSetRefs& sets) const {
  uint64_t bytes = 0;
  for (const RuleSet* set : sets) {
    if (set->source != kRpcRuleSource) continue;
    for (const Rule& rule : set->parsed.rules) {
      const FlowSlot slot = flows_.Find(rule.flow_id);
      const bool known = slot != kNoFlow && flows_.at(slot).active() &&
                         flows_.name_space(flows_.at(slot).name_space).name == set->name_space &&
                         *flows_.at(slot).rule == rule;
      if (!known) bytes += RuleToJson(rule).size();
    }
  }
  return bytes;
}

// How many are no longer the namespace's, those that move included.
size_t Core::RemoveRulesNotIn(const Turn& turn, const RuleSet& set,
                              const absl::flat_hash_set<int64_t>& wanted) {
  const NamespaceSlot space = flows_.FindNamespace(set.name_space);
  if (space == kNoNamespace) return 0;
  absl::btree_set<int64_t> removed = flows_.name_space(space).rule_ids;
  for (const Rule& rule : set.parsed.rules) removed.erase(rule.flow_id.value);
  const bool counts = disk_low_ && set.source == kRpcRuleSource;
  size_t ended = 0;
  for (const int64_t id : removed) {
    if (wanted.contains(id)) continue;
    ++ended;
    const FlowSlot slot = flows_.Find(FlowId{id});
    const Flow& flow = flows_.at(slot);
    if (counts && flow.tokens.size > 0) rule_bytes_while_low_ += RuleToJson(*flow.rule).size();
    RemoveRule(turn, slot);
  }
  if (ended > 0) {
    Note(true, InNamespace(set.name_space) + Counted(ended, "rule") +
                   " in force removed: acquires under " + (ended == 1 ? "it" : "them") +
                   " answer NO_RULE_EXISTS, for which clients let calls pass");
  }
  return removed.size();
}

bool Core::InstallRule(const Turn& turn, NamespaceSlot space, const Rule& rule,
                       int64_t* lowered_ms) {
  const FlowSlot slot = flows_.FindOrAdd(rule.flow_id);
  const Flow& flow = flows_.at(slot);
  const NamespaceSlot space_before = flow.name_space;
  const bool moves = space_before != kNoNamespace && space_before != space;
  if (flow.active() && !moves && *flow.rule == rule) return false;
  const int64_t offline_time_before_ms = flow.client_offline_time_ms;
  if (moves) {
    ForgetRule(turn, flow);
    flows_.name_space(space_before).waiting_for_sessions.erase(flow.id.value);
  }
  flows_.SetRule(slot, space, rule, options_.resource_timeout_factor);
  TrackSessions(&flows_.at(slot));
  TrackWaiting(flow);
  waiters_.ReturnAll(&flows_.at(slot).waiters);
  Wake(slot);
  RecordRule(turn, flow);
  if (space_before != kNoNamespace) flows_.EraseNamespaceIfUnused(space_before);
  if (flow.tokens.size > 0 && flow.client_offline_time_ms < offline_time_before_ms) {
    *lowered_ms = std::min(*lowered_ms, flow.client_offline_time_ms);
  }
  return true;
}

// Tokens that are out keep the rule in the ledger, for the times they live by and for listings.
void Core::RemoveRule(const Turn& turn, FlowSlot slot) {
  const Flow& flow = flows_.at(slot);
  if (flow.draining) {
    NoteIfRoom(false, InNamespace(flows_.name_space(flow.name_space).name) + "the drain of flow " +
                          std::to_string(flow.id.value) + " ended with its rule");
  }
  RefuseWaiters(turn, slot, TokenStatus::kNoRuleExists, RefusedBy::kNone);
  if (flow.tokens.size == 0) return EraseFlow(turn, slot);
  flows_.MarkRemoved(slot);
  RecordRule(turn, flow);
}

// Counts what each session holds, from when the rule has a cap for it. Tokens are walked when a cap
// is new, once: while they are out the counts are kept without a cap too, so that loads of rules
// with and without one, in turns, do not walk them again.
void Core::TrackSessions(Flow* flow) {
  if (!flow->rule->capped()) {
    if (flow->tokens.size == 0) flow->held_by_session.reset();
    return;
  }
  if (flow->held_by_session != nullptr) return;
  flow->held_by_session = std::make_unique<absl::flat_hash_map<SessionSlot, int64_t>>();
  for (TokenSlot token = flow->tokens.head; token != kNoToken;
       token = tokens_.at(token).next(TokenOrder::kFlow)) {
    (*flow->held_by_session)[tokens_.at(token).session] += tokens_.at(token).count;
  }
}

void Core::RecordRule(const Turn& turn, const Flow& flow) {
  auto state = flow.draining ? ledger::RuleState::kDraining : ledger::RuleState::kActive;
  if (flow.removed) state = ledger::RuleState::kRemoved;
  turn.batch->RuleSet({.name_space = flows_.name_space(flow.name_space).name,
                       .flow = flow.id,
                       .state = state,
                       .json = RuleToJson(*flow.rule)});
}

void Core::ForgetRule(const Turn& turn, const Flow& flow) const {
  turn.batch->RuleRemoved(flows_.name_space(flow.name_space).name, flow.id);
}

void Core::EraseFlow(const Turn& turn, FlowSlot slot) {
  const NamespaceSlot space = flows_.at(slot).name_space;
  ForgetRule(turn, flows_.at(slot));
  flows_.Erase(slot);
  flows_.EraseNamespaceIfUnused(space);
}

}  // namespace nowcalls::core
