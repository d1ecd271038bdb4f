#include "server/rule_files.h"

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "base/fingerprint.h"
#include "base/limits.h"
#include "base/text.h"
#include "core/rule_json.h"
#include "server/files.h"

namespace nowcalls::server {

Result<std::vector<LoadedRuleFile>> ReadRuleFiles(const std::vector<RuleFile>& files) {
  std::vector<LoadedRuleFile> loaded;
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
    loaded.push_back({file, *std::move(parsed), Fingerprint(*json)});
  }
  return loaded;
}

std::string DescribeRules(const std::vector<LoadedRuleFile>& files) {
  std::string lines;
  for (const auto& [file, parsed, fingerprint] : files) {
    lines += file.path + ": " + std::to_string(parsed.rules.size()) +
             (parsed.rules.size() == 1 ? " rule" : " rules") + " for namespace " +
             Quoted(file.name_space) + "\n";
    for (const std::string& text : parsed.skipped) lines += "  " + text + "\n";
    if (parsed.skipped_count > parsed.skipped.size()) {
      lines += "  " + std::to_string(parsed.skipped_count - parsed.skipped.size()) +
               " more are skipped\n";
    }
  }
  return lines;
}

}  // namespace nowcalls::server
