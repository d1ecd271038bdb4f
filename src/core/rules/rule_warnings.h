// RuleWarnings: surprises of a valid rule.
//
// Thread: any.
#ifndef NOWCALLS_CORE_RULES_RULE_WARNINGS_H_
#define NOWCALLS_CORE_RULES_RULE_WARNINGS_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/rules/rule.h"
#include "core/rules/rule_json.h"

namespace nowcalls::core {

// Counts that rounding makes 0 or clearly less; fields without effect; rules that Sentinel or
// sentinel-golang would not take; strings like numbers in a map of specificItems. `rule`: read from
// `object`.
std::vector<std::string> RuleWarnings(const nlohmann::json& object, const Rule& rule);

// Rules whose calls a second their namespace's guard refuses before they do. `guard`: requests a
// second, 0 for none.
RuleRemarks GuardWarnings(const std::vector<Rule>& rules, uint32_t guard);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULES_RULE_WARNINGS_H_
