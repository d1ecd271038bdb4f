// What a set of rules comes to, for the person who wrote it: `rules check` and `rules load`.
//
// Thread: any; pure.
#ifndef NOWCALLS_ADMIN_EFFECTIVE_RULES_H_
#define NOWCALLS_ADMIN_EFFECTIVE_RULES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "core/rules/rule.h"

namespace nowcalls::admin {

// A table with a line for each rule: level or rate, how long a call may last, offline time, and
// what happens when it is full. An asterisk marks what is as by default. A legend follows, with the
// flows that nothing limits without a server and the first values that have limits of their own.
// Empty without rules. Fits 80 columns unless numbers are longer than a rule needs.
std::string EffectiveRulesText(const std::vector<core::Rule>& rules);

// The line on stderr about a load that removes rules in force, or would; empty: it removes none.
std::string RemovalWarning(size_t removed);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_EFFECTIVE_RULES_H_
