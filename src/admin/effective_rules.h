// The effect of rules: `rules check` and `rules load`.
//
// Thread: any; pure.
#ifndef NOWCALLS_ADMIN_EFFECTIVE_RULES_H_
#define NOWCALLS_ADMIN_EFFECTIVE_RULES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "core/rules/rule.h"

namespace nowcalls::admin {

// A line a rule, and a legend; empty without rules. Names the first flows that nothing limits
// without a server, and the first values with own limits.
std::string EffectiveRulesText(const std::vector<core::Rule>& rules);

// On stderr, for a load that removes rules; empty: none.
std::string RemovalWarning(size_t removed);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_EFFECTIVE_RULES_H_
