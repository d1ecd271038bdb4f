#include "server/rule_files.h"

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "core/rule_json.h"
#include "server/files.h"

namespace nowcalls::server {

Result<std::vector<RuleText>> ReadRuleFiles(const std::vector<RuleFile>& files) {
  std::vector<RuleText> texts;
  std::unordered_map<int64_t, const RuleFile*> owners;
  for (const RuleFile& file : files) {
    Result<std::string> json = ReadWholeFile(file.path, kRulesFileBytesMax);
    if (!json.ok()) return Status::InvalidArgument("rules: " + json.status().message());
    Result<core::ParsedRules> parsed = core::ParseRules(*json);
    if (!parsed.ok()) return parsed.status().WithContext("rules: " + file.path);
    for (const core::Rule& rule : parsed->rules) {
      const auto [owner, is_new] = owners.emplace(rule.flow_id.value, &file);
      if (is_new) continue;
      return Status::InvalidArgument("rules: " + file.path + ": flowId " +
                                     std::to_string(rule.flow_id.value) + " is also in " +
                                     owner->second->path + "; a flowId belongs to one namespace");
    }
    texts.push_back({file, *std::move(json), parsed->rules.size(), std::move(parsed->skipped)});
  }
  return texts;
}

std::string DescribeRules(const std::vector<RuleText>& texts) {
  std::string lines;
  for (const RuleText& text : texts) {
    lines += text.file.path + ": " + std::to_string(text.rules) +
             (text.rules == 1 ? " rule" : " rules") + " for namespace " +
             Quoted(text.file.name_space) + "\n";
    for (const std::string& sentence : text.skipped) lines += "  " + sentence + "\n";
  }
  return lines;
}

}  // namespace nowcalls::server
