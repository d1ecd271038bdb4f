// Rule files, checked without the ledger.
//
// Thread: any; before the server serves.
#ifndef NOWCALLS_SERVER_RULES_RULE_FILES_H_
#define NOWCALLS_SERVER_RULES_RULE_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/rules/rule_json.h"
#include "nowcalls/status.h"
#include "server/config/config.h"

namespace nowcalls::server {

struct LoadedRuleFile {
  RuleFile file;
  // kInvalidArgument: file, rule, field and reason; then there is no set.
  Status problem;
  core::ParsedRules parsed;
  uint64_t fingerprint = 0;  // Of the file's content; 0: it could not be read.
};

// `strict`: a warning is a problem.
std::vector<LoadedRuleFile> ReadRuleFiles(const std::vector<RuleFile>& files, bool strict = false);

// The first problem, or kInvalidArgument: a flowId in files of two namespaces, or too many rules.
Status CheckRuleFiles(const std::vector<LoadedRuleFile>& files);

// "shop.json: 3 rules for namespace 'shop'", then remarks, a line each.
std::string DescribeRules(const std::vector<LoadedRuleFile>& files);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_RULES_RULE_FILES_H_
