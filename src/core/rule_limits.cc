#include "core/rule_limits.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "base/text.h"
#include "core/rules/flow_number.h"
#include "core/rules/rule_json.h"

namespace nowcalls::core {
namespace {

// Texts of CheckFlowOwners around the name of the other namespace.
constexpr std::string_view kBelongsTo = " belongs to namespace ";
constexpr std::string_view kAlsoIn = " is also in the set of namespace ";
constexpr std::string_view kHowToMove =
    "; of each kind, flow ids are unique across namespaces (to move it, load a set "
    "without it there first, such as []; to give a namespace another name, configure both, "
    "the old one with [])";

std::string FlowIdOf(const RuleSet& set, const Rule& rule) {
  const char* const kind = rule.param.has_value() ? "rule by value" : "rule";
  return InNamespace(set.name_space) + kind + " of resource " + Quoted(rule.resource) +
         ": clusterConfig.flowId " + std::to_string(rule.flow_id.value) +
         (IsFlowNumber(rule.flow_id) ? ", in the range of rules without flowId," : "");
}

// Flows of removed rules count: sets of ever new ids, with a token each, would gather flows without
// end. A set without new ids always passes: it makes no flow more, and may end grants. `rules`: in
// force with these sets.
Status CheckFlowLimit(const FlowTable& table, const Limits& limits, const RuleSetRefs& sets,
                      const absl::flat_hash_set<FlowKey>& wanted, size_t rules) {
  const size_t fresh = std::count_if(
      wanted.begin(), wanted.end(), [&](const FlowKey& key) { return table.Find(key) == kNoFlow; });
  const uint64_t flows_max = limits.flows_max();
  size_t flows = table.size() + fresh;
  if (fresh == 0 || flows <= flows_max) return {};
  for (const RuleSet* set : sets) {
    // Flows that these sets erase make room: rules left out, without tokens.
    const NamespaceSlot space = table.FindNamespace(set->name_space);
    if (space == kNoNamespace) continue;
    for (const FlowKey& key : table.name_space(space).rule_keys) {
      const bool stays = wanted.contains(key) || table.at(table.Find(key)).tokens.size > 0;
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

}  // namespace

std::string InNamespace(std::string_view name_space) {
  return "namespace " + std::string(name_space) + ": ";
}

absl::flat_hash_set<FlowKey> FlowKeysOf(const RuleSetRefs& sets) {
  absl::flat_hash_set<FlowKey> keys;
  for (const RuleSet* set : sets) {
    for (const Rule& rule : set->parsed.rules) keys.insert(rule.key());
  }
  return keys;
}

Status CheckFlowOwners(const FlowTable& flows, const RuleSetRefs& sets) {
  absl::flat_hash_set<std::string> replaced;
  for (const RuleSet* set : sets) {
    if (!replaced.insert(set->name_space).second) {
      return Status::InvalidArgument(InNamespace(set->name_space) + "is given two sets of rules");
    }
  }
  // A flow may move only from a namespace whose set is replaced in this step.
  absl::flat_hash_map<FlowKey, const RuleSet*> owners;
  for (const RuleSet* set : sets) {
    for (const Rule& rule : set->parsed.rules) {
      const auto [owner, is_new] = owners.emplace(rule.key(), set);
      if (!is_new) {
        return Status::InvalidArgument(FlowIdOf(*set, rule) + std::string(kAlsoIn) +
                                       owner->second->name_space);
      }
      const FlowSlot slot = flows.Find(rule.key());
      if (slot == kNoFlow || !flows.at(slot).active()) continue;
      const std::string& name = flows.name_space(flows.at(slot).name_space).name;
      if (replaced.contains(name)) continue;
      return Status::AlreadyExists(FlowIdOf(*set, rule) + std::string(kBelongsTo) + name +
                                   std::string(kHowToMove));
    }
  }
  return {};
}

// A resource may have the same words: the first are cut at, the last are before the name.
std::string WithoutOthers(const std::string& text, const Sight& sight) {
  const size_t cut = std::min(text.find(kBelongsTo), text.find(kAlsoIn));
  if (sight.all() || cut == std::string::npos) return text;
  const size_t last = text.rfind(kBelongsTo);
  if (last != std::string::npos && text.ends_with(kHowToMove)) {
    const size_t begin = last + kBelongsTo.size();
    const std::string_view name(text.data() + begin, text.size() - kHowToMove.size() - begin);
    if (sight.Has(name)) return text;
  }
  return text.substr(0, cut) + " belongs to another namespace" + std::string(kHowToMove);
}

Status CheckRuleLimits(const FlowTable& flows, const Limits& limits, const RuleSetRefs& sets,
                       const absl::flat_hash_set<FlowKey>& wanted) {
  // What would be there: the rules of replaced namespaces leave, those of the sets come.
  size_t namespaces = flows.namespaces();
  size_t rules = flows.rules();
  for (const RuleSet* set : sets) {
    const NamespaceSlot space = flows.FindNamespace(set->name_space);
    if (space == kNoNamespace) {
      ++namespaces;
    } else {
      rules -= flows.name_space(space).rule_keys.size();
    }
    rules += set->parsed.rules.size();
  }
  // A bound lowered below what is there refuses only more of it.
  if (namespaces > std::max<size_t>(flows.namespaces(), limits.namespaces_max)) {
    return Status::ResourceExhausted(
        "the set would make " + std::to_string(namespaces) + " namespaces; at most " +
        std::to_string(limits.namespaces_max) + " are allowed (namespaces_max)");
  }
  if (rules > limits.rules_max) {
    return Status::ResourceExhausted("the set would make " + std::to_string(rules) +
                                     " rules; at most " + std::to_string(limits.rules_max) +
                                     " are allowed (rules_max)");
  }
  return CheckFlowLimit(flows, limits, sets, wanted, rules);
}

uint64_t BytesToWrite(const FlowTable& flows, const RuleSetRefs& sets) {
  uint64_t bytes = 0;
  for (const RuleSet* set : sets) {
    if (set->source != kRpcRuleSource) continue;
    for (const Rule& rule : set->parsed.rules) {
      const FlowSlot slot = flows.Find(rule.key());
      const bool known = slot != kNoFlow && flows.at(slot).active() &&
                         flows.name_space(flows.at(slot).name_space).name == set->name_space &&
                         *flows.at(slot).rule == rule;
      if (!known) bytes += RuleToJson(rule).size();
    }
  }
  return bytes;
}

}  // namespace nowcalls::core
