// A file of rules, for `rules check`, `diff` and `load`.
//
// Thread: any; blocking.
#ifndef NOWCALLS_ADMIN_RULES_FILE_H_
#define NOWCALLS_ADMIN_RULES_FILE_H_

#include <string>
#include <string_view>

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
// Without namespace, rules without flowId have flow id 0.
Result<RulesFile> ReadRulesFile(const std::string& path, std::string_view name_space);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_RULES_FILE_H_
