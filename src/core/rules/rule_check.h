// CheckRuleSet: from a rule source's text to a set that Core can put in force.
//
// Thread: any. Every RuleSink does it in its Check.
#ifndef NOWCALLS_CORE_RULES_RULE_CHECK_H_
#define NOWCALLS_CORE_RULES_RULE_CHECK_H_

#include <string_view>

#include "nowcalls/rule_source.h"
#include "nowcalls/status.h"

namespace nowcalls::core {

// kInvalidArgument names the fault in the source's name, the namespace, or the rules
// (core/rules/rule_json.h).
Result<RuleSink::CheckedSet> CheckRuleSet(std::string_view source, std::string_view name_space,
                                          std::string_view json);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULES_RULE_CHECK_H_
