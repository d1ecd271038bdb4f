// Files of rules: what is taken is written and read again as the same.
#include <doctest/doctest.h>

#include "core/rules/rule_json.h"
#include "fuzz/targets.h"

namespace nowcalls::fuzz {

void FuzzRules(std::string_view input) {
  const Result<core::ParsedRules> parsed = core::ParseRules(input, "shop");
  if (!parsed.ok()) {
    REQUIRE(parsed.status().code() == StatusCode::kInvalidArgument);
    REQUIRE_FALSE(parsed.status().message().empty());
  } else {
    REQUIRE(parsed->Remarks().size() <= 3 * (core::RuleRemarks::kTextsMax + 1));
    for (const core::Rule& rule : parsed->rules) {
      const Result<core::Rule> again = core::ParseRule(core::RuleToJson(rule));
      REQUIRE_MESSAGE(again.ok(), again.status().ToString());
      REQUIRE((*again == rule));
    }
  }
  const Result<core::Rule> one = core::ParseRule(input);
  if (one.ok()) REQUIRE((*core::ParseRule(core::RuleToJson(*one)) == *one));
}

}  // namespace nowcalls::fuzz
