// What the parser makes of one rule, or says against it.
//
// Thread: any.
#ifndef NOWCALLS_UNIT_CORE_RULE_PARSING_H_
#define NOWCALLS_UNIT_CORE_RULE_PARSING_H_

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/rules/rule_json.h"

namespace nowcalls::core {

// The error of a set, or "loaded N".
inline std::string Outcome(const std::string& set) {
  const auto parsed = ParseRules(set);
  if (parsed.ok()) return "loaded " + std::to_string(parsed->rules.size());
  CHECK(parsed.status().code() == StatusCode::kInvalidArgument);
  return parsed.status().message();
}

// The only rule of a set of one object.
inline Rule RuleOf(const std::string& object) {
  const auto parsed = ParseRules("[" + object + "]");
  REQUIRE_MESSAGE(parsed.ok(), parsed.status().ToString());
  REQUIRE(parsed->rules.size() == 1);
  return parsed->rules[0];
}

// What is said of a set of one object that applies.
inline std::vector<std::string> RemarksOn(const std::string& object) {
  const auto parsed = ParseRules("[" + object + "]");
  REQUIRE_MESSAGE(parsed.ok(), parsed.status().ToString());
  return parsed->Remarks();
}

}  // namespace nowcalls::core

#endif  // NOWCALLS_UNIT_CORE_RULE_PARSING_H_
