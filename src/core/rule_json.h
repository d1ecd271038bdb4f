// Rules from and to JSON: the one parser for files, rules_load and the ledger.
//
// Thread: any. The form is what Sentinel's dashboard writes: an array of FlowRule objects with a
// clusterConfig. Keys come in any order, unknown keys are tolerated, comments are allowed. Our own
// additions, maxPerClient and shadow, are keys of clusterConfig.
#ifndef NOWCALLS_CORE_RULE_JSON_H_
#define NOWCALLS_CORE_RULE_JSON_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/rule.h"
#include "nowcalls/status.h"

namespace nowcalls::core {

struct ParsedRules {
  std::vector<Rule> rules;
  size_t skipped_count = 0;          // Rules with clusterMode=false.
  std::vector<std::string> skipped;  // A sentence for each of the first kSkippedTextsMax of them.
};
inline constexpr size_t kSkippedTextsMax = 10;

// kInvalidArgument says which rule (its position from 1, resource, flowId), which field and why,
// or at which line the JSON is wrong. A flowId that appears twice is an error. Time and memory grow
// linearly with the text.
Result<ParsedRules> ParseRules(std::string_view text);

// One rule object, as RuleToJson writes it.
Result<Rule> ParseRule(std::string_view text);

// One line of JSON with Sentinel's field names, every field present. ParseRule(RuleToJson(r)) == r.
std::string RuleToJson(const Rule& rule);

// maxPerClient as a rule file has it, without quotes: "0" for no cap, "5", "25%".
std::string MaxPerClientText(const Rule& rule);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULE_JSON_H_
