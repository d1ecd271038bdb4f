#include "server/rules/rule_files.h"

#include <cstdint>
#include <map>
#include <utility>

#include "base/fingerprint.h"
#include "base/limits.h"
#include "base/shown_text.h"
#include "base/text.h"
#include "core/rules/rule_json.h"
#include "server/config/files.h"

namespace nowcalls::server {

namespace {

LoadedRuleFile ReadRuleFile(const RuleFile& file, bool strict) {
  LoadedRuleFile loaded;
  loaded.file = file;
  const Result<std::string> json = ReadWholeFile(file.path, kRulesFileBytesMax);
  if (!json.ok()) {
    loaded.problem = Status::InvalidArgument("rules: " + json.status().message());
    return loaded;
  }
  // Also of invalid content: the watcher knows then what was refused.
  loaded.fingerprint = Fingerprint(*json);
  Result<core::ParsedRules> parsed = core::ParseRules(*json, file.name_space);
  const Status problem = parsed.ok() && strict ? parsed->CheckStrict() : parsed.status();
  if (!problem.ok()) {
    loaded.problem = problem.WithContext("rules: " + file.path);
    return loaded;
  }
  loaded.parsed = *std::move(parsed);
  return loaded;
}

}  // namespace

std::vector<LoadedRuleFile> ReadRuleFiles(const std::vector<RuleFile>& files, bool strict) {
  std::vector<LoadedRuleFile> loaded;
  loaded.reserve(files.size());
  for (const RuleFile& file : files) loaded.push_back(ReadRuleFile(file, strict));
  return loaded;
}

Status CheckRuleFiles(const std::vector<LoadedRuleFile>& files) {
  std::map<FlowKey, const RuleFile*> owners;
  for (const LoadedRuleFile& loaded : files) {
    NOWCALLS_RETURN_IF_ERROR(loaded.problem);
    for (const core::Rule& rule : loaded.parsed.rules) {
      // Flows of one kind belong to one namespace; a mistake shows before the ledger is opened.
      const auto [owner, is_new] = owners.emplace(rule.key(), &loaded.file);
      if (is_new) continue;
      return Status::InvalidArgument("rules: " + loaded.file.path + ": flowId " +
                                     std::to_string(rule.flow_id.value) + " is also in " +
                                     owner->second->path +
                                     ", for a rule of its kind; a rule belongs to one namespace");
    }
  }
  if (owners.size() > Limits().rules_max) {
    return Status::InvalidArgument("rules: the files have " + std::to_string(owners.size()) +
                                   " rules together, and a server takes " +
                                   std::to_string(Limits().rules_max) + " (rules_max)");
  }
  return {};
}

std::string DescribeRules(const std::vector<LoadedRuleFile>& files) {
  std::string lines;
  for (const auto& [file, problem, parsed, fingerprint] : files) {
    lines += file.path + ": " + std::to_string(parsed.rules.size()) +
             (parsed.rules.size() == 1 ? " rule" : " rules") + " for namespace " +
             Quoted(file.name_space) + "\n";
    for (const std::string& text : parsed.Remarks()) lines += "  " + ShownText(text) + "\n";
  }
  return lines;
}

}  // namespace nowcalls::server
