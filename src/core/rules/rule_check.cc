#include "core/rules/rule_check.h"

#include <memory>
#include <string>
#include <utility>

#include "base/text.h"
#include "core/rules/rule_json.h"
#include "core/rules/rule_set.h"

namespace nowcalls::core {

Result<RuleSink::CheckedSet> CheckRuleSet(std::string_view source, std::string_view name_space,
                                          std::string_view json) {
  NOWCALLS_RETURN_IF_ERROR(CheckRuleSource(source).WithContext("rule source"));
  NOWCALLS_RETURN_IF_ERROR(CheckNamespace(name_space).WithContext("namespace"));
  Result<ParsedRules> parsed = ParseRules(json, name_space);
  if (!parsed.ok()) return parsed.status();
  RuleSet set{.name_space = std::string(name_space), .parsed = *std::move(parsed)};
  set.source = source;
  RuleSink::CheckedSet checked = std::make_shared<const RuleSet>(std::move(set));
  return checked;
}

}  // namespace nowcalls::core
