// Rules from and to JSON: the one parser for files, rules_load and the ledger.
//
// Thread: any. The form is an array of Sentinel's FlowRules and ParamFlowRules, and
// sentinel-golang's flow.Rules and hotspot.Rules, each with a clusterConfig. Our own additions are
// keys of clusterConfig. Comments are allowed, numbers and booleans may be strings
// (core/rules/rule_values.h). Unknown keys are tolerated; core/rules/rule_keys.h names misspelt
// ones.
//
// A set is refused for an object of another kind (core/rules/rule_kind.h), or a rule of Sentinel's
// without a plain true or false for clusterMode. So is a set of which no rule applies.
#ifndef NOWCALLS_CORE_RULES_RULE_JSON_H_
#define NOWCALLS_CORE_RULES_RULE_JSON_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/rules/rule.h"
#include "nowcalls/status.h"

namespace nowcalls::core {

// Keeps the first kTextsMax sentences and counts the others.
class RuleRemarks {
 public:
  static constexpr size_t kTextsMax = 10;

  // `more_are` ends the sentence about the counted ones: "5 " and this.
  explicit RuleRemarks(std::string_view more_are) : more_are_(more_are) {}

  void Add(std::string text);
  size_t count() const { return count_; }
  // A line for each kept sentence, and one for all others.
  std::vector<std::string> Lines() const;

 private:
  std::string_view more_are_;
  size_t count_ = 0;
  std::vector<std::string> texts_;
};

struct ParsedRules {
  std::vector<Rule> rules;
  RuleRemarks skipped{"more are skipped"};       // Rules with clusterMode false.
  RuleRemarks ignored{"more keys are ignored"};  // Keys that are probably misspelt (RuleKeys).
  RuleRemarks warned{"more warnings"};           // Keys that come twice, and RuleWarnings.

  // Without `skipped`.
  size_t warnings() const { return ignored.count() + warned.count(); }
  // kInvalidArgument if there are warnings: how many, and the first.
  Status CheckStrict() const;
  std::vector<std::string> Remarks() const;
};

// kInvalidArgument names the rule (position from 1, resource, flowId), the field and the reason, or
// the line of wrong JSON. A flowId may have a rule of the flow and one by value. A rule without
// flowId gets that of its name (core/rules/flow_number.h); without namespace it gets flow id 0, and
// the set is only for a look. "[]" is a set without rules. Time and memory are linear in the text.
Result<ParsedRules> ParseRules(std::string_view text, std::string_view name_space = {});

// One rule object, as RuleToJson writes it, with a flowId. clusterMode is not looked at.
Result<Rule> ParseRule(std::string_view text);

// One line, with every field of the rule's kind. A FlowRule has the same bytes in every version.
// REQUIRES: a parsed rule. ParseRule(RuleToJson(r)) == r.
std::string RuleToJson(const Rule& rule);

// maxPerClient as a rule file has it, without quotes: "0" for no cap, "5", "25%".
std::string MaxPerClientText(const Rule& rule);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULES_RULE_JSON_H_
