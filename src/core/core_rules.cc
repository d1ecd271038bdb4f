// Rules: a namespace's set is replaced as a whole or not at all.
#include <algorithm>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "base/check.h"
#include "base/text.h"
#include "core/core.h"
#include "core/rule_json.h"

namespace nowcalls::core {
namespace {

constexpr size_t kSkippedNotesMax = 10;

}  // namespace

Result<RulesLoaded> Core::ReplaceRules(const Turn& turn, std::string_view name_space,
                                       std::string_view json) {
  NOWCALLS_RETURN_IF_ERROR(CheckNamespace(name_space).WithContext("namespace"));
  Result<ParsedRules> parsed = ParseRules(json);
  if (!parsed.ok()) return parsed.status();
  NOWCALLS_RETURN_IF_ERROR(CheckRuleSet(name_space, parsed->rules));

  const NamespaceSlot space = flows_.FindOrAddNamespace(name_space);
  absl::flat_hash_set<int64_t> kept;
  for (const Rule& rule : parsed->rules) kept.insert(rule.flow_id.value);
  std::vector<FlowSlot> removed;
  for (const auto& [id, slot] : flows_.by_id()) {
    if (flows_.at(slot).name_space == space && !kept.contains(id)) removed.push_back(slot);
  }
  for (const FlowSlot slot : removed) RemoveRule(turn, slot);
  size_t changed = 0;
  for (const Rule& rule : parsed->rules) changed += InstallRule(turn, space, rule) ? 1 : 0;

  Note(false, "namespace " + std::string(name_space) + ": " + std::to_string(parsed->rules.size()) +
                  " rules, " + std::to_string(changed) + " new or changed, " +
                  std::to_string(removed.size()) + " removed, " +
                  std::to_string(parsed->skipped.size()) + " skipped");
  for (size_t i = 0; i < std::min(parsed->skipped.size(), kSkippedNotesMax); ++i) {
    Note(true, "namespace " + std::string(name_space) + ": " + parsed->skipped[i]);
  }
  flows_.EraseNamespaceIfUnused(space);
  return RulesLoaded{static_cast<uint32_t>(parsed->rules.size()), std::move(parsed->skipped)};
}

Status Core::CheckRuleSet(std::string_view name_space, const std::vector<Rule>& rules) const {
  const NamespaceSlot space = flows_.FindNamespace(name_space);
  if (space == kNoNamespace && flows_.namespaces() >= options_.limits.namespaces_max) {
    return Status::ResourceExhausted("the server knows " +
                                     std::to_string(options_.limits.namespaces_max) +
                                     " namespaces already (namespaces_max)");
  }
  const size_t others =
      flows_.rules() - (space == kNoNamespace ? 0 : flows_.name_space(space).rules);
  if (others + rules.size() > options_.limits.rules_max) {
    return Status::ResourceExhausted(
        "the set would make " + std::to_string(others + rules.size()) + " rules; at most " +
        std::to_string(options_.limits.rules_max) + " are allowed (rules_max)");
  }
  for (size_t i = 0; i < rules.size(); ++i) {
    const FlowSlot slot = flows_.Find(rules[i].flow_id);
    if (slot == kNoFlow || flows_.at(slot).rule == nullptr) continue;
    if (flows_.at(slot).name_space == space) continue;
    return Status::AlreadyExists("rule of resource " + Quoted(rules[i].resource) +
                                 ": clusterConfig.flowId " +
                                 std::to_string(rules[i].flow_id.value) + " belongs to namespace " +
                                 flows_.name_space(flows_.at(slot).name_space).name +
                                 "; flow ids are unique across namespaces");
  }
  return {};
}

bool Core::InstallRule(const Turn& turn, NamespaceSlot space, const Rule& rule) {
  const FlowSlot slot = flows_.FindOrAdd(rule.flow_id);
  Flow& flow = flows_.at(slot);
  if (flow.rule != nullptr && *flow.rule == rule) return false;
  const int64_t offline_time_before_ms = flow.client_offline_time_ms;
  flows_.SetRule(slot, space, rule, options_.resource_timeout_factor);
  turn.batch->RuleSet(flows_.name_space(space).name, rule.flow_id, RuleToJson(rule));
  if (flow.client_offline_time_ms < offline_time_before_ms) LowerOfflineTime(flow);
  return true;
}

void Core::RemoveRule(const Turn& turn, FlowSlot slot) {
  const Flow& flow = flows_.at(slot);
  turn.batch->RuleRemoved(flows_.name_space(flow.name_space).name, flow.id);
  flows_.ClearRule(slot);
  EraseFlowIfUnused(slot);
}

void Core::EraseFlowIfUnused(FlowSlot slot) {
  const Flow& flow = flows_.at(slot);
  if (flow.rule == nullptr && flow.tokens.size == 0) flows_.Erase(slot);
}

}  // namespace nowcalls::core
