// A file of rules as `rules check`, `rules diff` and `rules load` take it.
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

// "-" stands for standard input.
bool IsStandardInput(const std::string& path);
// The path for a message: "standard input" for that.
std::string RulesFileName(const std::string& path);

// With the file's name. kInvalidArgument: there is no such file, it is longer than
// kRulesFileBytesMax, or holds something else than rules; then with the rule and field. kIoError:
// the system would not read it.
Result<RulesFile> ReadRulesFile(const std::string& path);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_RULES_FILE_H_
