// ReadRuleFields: from the JSON object of a rule to a Rule.
//
// Thread: any. Does not look at clusterMode.
#ifndef NOWCALLS_CORE_RULES_RULE_FIELDS_H_
#define NOWCALLS_CORE_RULES_RULE_FIELDS_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/rules/rule.h"
#include "core/rules/rule_kind.h"

namespace nowcalls::core {

// The first mistake, as "count must be >= 0": it begins with the path of the field. Empty: none.
// Without flowId the rule has flow id 0.
// REQUIRES: IsSupported(kind); `rule` is new.
std::string ReadRuleFields(RuleKind kind, const nlohmann::json& object, Rule* rule);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULES_RULE_FIELDS_H_
