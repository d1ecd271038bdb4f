// A file of rules, for `rules check`, `diff` and `load`.
//
// Thread: any; blocking.
#ifndef NOWCALLS_ADMIN_RULES_FILE_H_
#define NOWCALLS_ADMIN_RULES_FILE_H_

#include <string>

#include "core/rules/rule_json.h"
#include "nowcalls/status.h"

namespace nowcalls::admin {

struct RulesFile {
  std::string json;
  core::ParsedRules parsed;
};

// "-".
bool IsStandardInput(const std::string& path);
// For messages.
std::string RulesFileName(const std::string& path);

// Errors name the file. kInvalidArgument: missing, above kRulesFileBytesMax, or no rules (then rule
// and field). kIoError: unreadable.
Result<RulesFile> ReadRulesFile(const std::string& path);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_RULES_FILE_H_
