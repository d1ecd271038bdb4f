// RuleWarnings: what a valid rule comes to that its author may not expect.
//
// Thread: any; pure.
#ifndef NOWCALLS_CORE_RULES_RULE_WARNINGS_H_
#define NOWCALLS_CORE_RULES_RULE_WARNINGS_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/rules/rule.h"

namespace nowcalls::core {

// A level of 0 by rounding; fields without effect; strings that look like numbers in a map of
// specificItems. `rule` is what `object` was read as.
std::vector<std::string> RuleWarnings(const nlohmann::json& object, const Rule& rule);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULES_RULE_WARNINGS_H_
