// RuleSet: one source's rules for a namespace.
//
// Thread: any.
#ifndef NOWCALLS_CORE_RULES_RULE_SET_H_
#define NOWCALLS_CORE_RULES_RULE_SET_H_

#include <string>
#include <vector>

#include "core/rules/rule_json.h"
#include "nowcalls/rule_source.h"

namespace nowcalls::core {

struct RuleSet {
  std::string name_space;
  ParsedRules parsed;
  std::string source = std::string(kRpcRuleSource);  // nowcalls/rule_source.h
};

// Put in force together.
using RuleSetRefs = std::vector<const RuleSet*>;

// REQUIRES: `sets` outlives what is returned.
inline RuleSetRefs RefsTo(const std::vector<RuleSet>& sets) {
  RuleSetRefs refs;
  for (const RuleSet& set : sets) refs.push_back(&set);
  return refs;
}

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULES_RULE_SET_H_
