#include "core/tables/flow_table.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"
#include "base/prefetch.h"

namespace nowcalls::core {

FlowSlot FlowTable::Find(const FlowKey& key) const {
  return slots_.Find(HashOf(key.id), [&](FlowSlot slot) { return at(slot).key() == key; });
}

AcquireAnswer CountRefusal(FlowTable* flows, const LaneRef& lane, TokenStatus status,
                           RefusedBy limit) {
  flows->Count(&flows->at(lane.flow_slot),
               [&](TokenCounters* c) { ++c->refused[static_cast<size_t>(limit)]; });
  return {.status = status,
          .refused_by = limit,
          .now_calls = flows->lane(lane).now_calls,
          .level = flows->LevelOf(lane)};
}

std::vector<FlowSlot> FindAll(const FlowTable& flows, const FlowChoice& choice) {
  std::vector<FlowSlot> found;
  for (const FlowKind kind : kFlowKinds) {
    if (choice.kind.value_or(kind) != kind) continue;
    const FlowSlot slot = flows.Find({choice.id, kind});
    if (slot != kNoFlow) found.push_back(slot);
  }
  return found;
}

Status CheckOneNamespace(const FlowTable& flows, const FlowChoice& choice) {
  const std::vector<FlowSlot> found = FindAll(flows, choice);
  if (found.size() < 2) return {};
  const auto name_of = [&](FlowSlot slot) -> const std::string& {
    return flows.name_space(flows.at(slot).name_space).name;
  };
  if (flows.at(found[0]).name_space == flows.at(found[1]).name_space) return {};
  return Status::InvalidArgument("flow_id " + std::to_string(choice.id.value) +
                                 " has a rule of the flow in namespace " + name_of(found[0]) +
                                 " and a rule by value in namespace " + name_of(found[1]) +
                                 ": say which is meant with kind flow or value");
}

// Takes any flow with the hash, maybe that of the other kind: comparing ids would wait for the
// first of the lines to load.
void FlowTable::Prefetch(FlowId id) const {
  const FlowSlot slot = slots_.Find(HashOf(id), [](FlowSlot) { return true; });
  if (slot != kNoFlow) PrefetchAt(slot);
}

void FlowTable::PrefetchAt(FlowSlot slot) const {
  const Flow& flow = at(slot);
  PrefetchForWriting(&flow);
  PrefetchForWriting(&flow.rule);
  PrefetchForWriting(&flow.counters);    // The first ones: what happens most.
  PrefetchForWriting(&flow.held_times);  // Most tokens end soon.
}

FlowSlot FlowTable::FindOrAdd(const FlowKey& key) {
  if (const FlowSlot found = Find(key); found != kNoFlow) return found;
  const FlowSlot slot = flows_.Take();
  at(slot).id = key.id;
  at(slot).keyed = key.kind == FlowKind::kValue;
  // Ids that collide are no attack: whoever loads rules can refuse every call anyway.
  slots_.Insert(HashOf(key.id), slot);
  by_key_.emplace(key, slot);
  return slot;
}

void FlowTable::Erase(FlowSlot slot) {
  Flow& flow = at(slot);
  NOWCALLS_CHECK(flow.tokens.size == 0 && flow.lane.now_calls == 0 && flow.keys == 0);
  CountRule(slot, /*in=*/false);
  slots_.Erase(HashOf(flow.id), slot);
  by_key_.erase(flow.key());
  flows_.Return(slot);
}

NamespaceSlot FlowTable::FindNamespace(std::string_view name) const {
  const auto it = namespace_slots_.find(std::string(name));
  return it == namespace_slots_.end() ? kNoNamespace : it->second;
}

NamespaceSlot FlowTable::FindOrAddNamespace(std::string_view name) {
  if (const NamespaceSlot found = FindNamespace(name); found != kNoNamespace) return found;
  const NamespaceSlot slot = namespaces_.Take();
  namespaces_[slot].name = std::string(name);
  namespaces_[slot].number = ++last_namespace_number_;
  namespaces_[slot].guard = guards_.Of(name);
  namespace_slots_.emplace(std::string(name), slot);
  return slot;
}

void FlowTable::SetGuards(NamespaceGuards guards) {
  guards_ = std::move(guards);
  for (const auto& [name, slot] : namespace_slots_) namespaces_[slot].guard = guards_.Of(name);
}

void FlowTable::EraseNamespaceIfUnused(NamespaceSlot slot) {
  Namespace& name_space = namespaces_[slot];
  if (name_space.sessions > 0 || !name_space.rule_keys.empty() || name_space.removed_rules > 0) {
    return;
  }
  // A source's claim outlives its rules: the namespace of an empty file stays owned.
  if (!name_space.claimed_by.empty()) return;
  namespace_slots_.erase(name_space.name);
  namespaces_.Return(slot);
}

void FlowTable::SetRule(FlowSlot slot, NamespaceSlot name_space, const Rule& rule,
                        double timeout_factor) {
  // The old rule leaves the sums of its namespace, which may be another one.
  Flow& flow = at(slot);
  CountRule(slot, /*in=*/false);
  flow.name_space = name_space;
  flow.removed = false;
  flow.rule = std::make_unique<Rule>(rule);
  CountRule(slot, /*in=*/true);
  // Keys see the new number and refresh when they are next used: no walk over them here.
  ++flow.rule_number;
  NOWCALLS_CHECK(rule.key() == flow.key());
  NOWCALLS_CHECK(!flow.keyed || ItemsAreSorted(*rule.param));
  // Copies of the rule for calls. Draining is the operator's, so a new rule leaves it.
  flow.lane.level_count = rule.count;
  flow.level_by_session = rule.threshold_type == ThresholdType::kAvgLocal;
  flow.shadow = rule.shadow;
  if (rule.says_rate() != flow.says_rate) flow.told_other_kind = false;
  flow.says_rate = rule.says_rate();
  flow.timeout_strategy = static_cast<uint8_t>(rule.resource_timeout_strategy);
  flow.resource_timeout_ms = rule.resource_timeout_ms;
  flow.client_offline_time_ms = rule.client_offline_time_ms;
  flow.max_hold_ms = rule.max_hold_ms;
  flow.hold_ms = std::llround(static_cast<double>(rule.resource_timeout_ms) * timeout_factor);
}

void FlowTable::MarkRemoved(FlowSlot slot) {
  Flow& flow = at(slot);
  NOWCALLS_CHECK(flow.active());
  CountRule(slot, /*in=*/false);
  // Times and copies stay: they hold for the tokens that are out.
  flow.removed = true;
  CountRule(slot, /*in=*/true);
  flow.draining = false;
}

// A share of the level is one call at least: with none a client could never do anything.
int64_t FlowTable::CapOf(const Flow& flow) const {
  if (!flow.rule->capped()) return INT64_MAX;
  if (flow.rule->max_per_client > 0) return flow.rule->max_per_client;
  const double share =
      static_cast<double>(LevelOf(flow, kNoKey)) * flow.rule->max_per_client_percent / 100;
  return std::max<int64_t>(1, WholeCalls(share));
}

KeySlot FlowTable::FindOrAddKey(FlowSlot slot, const Param& value) {
  KeySlot key = keys_.Find(slot, value);
  if (key == kNoKey) {
    key = keys_.Add(slot, value);
    ++at(slot).keys;
  }
  RefreshKey(key);
  return key;
}

void FlowTable::EraseKeyIfUnused(KeySlot slot) {
  const Key& key = keys_.at(slot);
  if (key.tokens > 0 || key.lane.waiting() > 0) return;
  --at(key.flow_slot).keys;
  keys_.Erase(slot);
}

void FlowTable::RefreshKey(KeySlot slot) {
  Key& key = keys_.at(slot);
  const Flow& flow = at(key.flow_slot);
  if (key.rule_number == flow.rule_number) return;
  key.lane.level_count = core::CountOf(*flow.rule, key.value.view());
  key.rule_number = flow.rule_number;
}

void FlowTable::CountRule(FlowSlot slot, bool in) {
  const Flow& flow = at(slot);
  if (flow.rule == nullptr) return;
  Namespace& name_space = namespaces_[flow.name_space];
  const FlowName name{flow.rule->resource, flow.key().kind, flow.removed};
  if (in) {
    names_.Add(name, flow.name_space, slot);
  } else {
    names_.Erase(name, flow.name_space, slot);
  }
  if (flow.removed) {
    in ? ++name_space.removed_rules : --name_space.removed_rules;
  } else if (in) {
    ++rules_;
    name_space.rule_keys.insert(flow.key());
  } else {
    --rules_;
    name_space.rule_keys.erase(flow.key());
  }
}

}  // namespace nowcalls::core
