// Rules from and to JSON: the one parser for files, rules_load and the ledger.
//
// Thread: any. The form is what Sentinel's dashboard writes: an array of FlowRule objects with a
// clusterConfig. Keys come in any order, unknown keys are tolerated (core/rule_keys.h tells of
// those that look like a mistake), comments are allowed. Our own additions, maxPerClient and
// shadow, are keys of clusterConfig.
#ifndef NOWCALLS_CORE_RULE_JSON_H_
#define NOWCALLS_CORE_RULE_JSON_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/rule.h"
#include "nowcalls/status.h"

namespace nowcalls::core {

// Sentences about rules, of which the first kTextsMax are kept and the others counted.
class RuleRemarks {
 public:
  static constexpr size_t kTextsMax = 10;

  // `more_are`: what is said of those that are only counted: "5 " and this.
  explicit RuleRemarks(std::string_view more_are) : more_are_(more_are) {}

  void Add(std::string text);
  size_t count() const { return count_; }
  // One for each that is kept, and one for all others.
  std::vector<std::string> Lines() const;

 private:
  std::string_view more_are_;
  size_t count_ = 0;
  std::vector<std::string> texts_;
};

struct ParsedRules {
  std::vector<Rule> rules;
  RuleRemarks skipped{"more are skipped"};       // Rules with clusterMode=false.
  RuleRemarks ignored{"more keys are ignored"};  // Keys that are probably misspelt (RuleKeys).

  // What whoever wrote the rules should know.
  std::vector<std::string> Remarks() const;
};

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
