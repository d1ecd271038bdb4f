#include "server/rules/configured_rules.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "server/log/logging.h"

namespace nowcalls::server {

Status ConfiguredRules::PutInForce(std::vector<LoadedRuleFile> files) {
  std::vector<core::RuleSet> sets;
  for (LoadedRuleFile& loaded : files) {
    const RuleFile& file = loaded.file;
    core::RuleSet set{.name_space = file.name_space, .parsed = std::move(loaded.parsed)};
    set.source = FileSourceName(file.path);
    // 1. Claim the namespace. One whose rules came by RPC is another's, unless taken over.
    const Status claimed = sources_.Claim(
        {.source = set.source, .name_space = set.name_space, .takeover = config_->rules_takeover});
    if (claimed.code() == StatusCode::kAlreadyExists) {
      return Status::InvalidArgument("rules: " + claimed.message() +
                                     ". Or start with --rules-takeover, which lets the configured "
                                     "files replace such rules");
    }
    if (!claimed.ok()) return Status::InvalidArgument("rules: " + claimed.message());
    // 2. A valid file becomes a set; a faulty one keeps the ledger's rules from it.
    at_start_.push_back({.fingerprint = loaded.fingerprint});
    if (loaded.problem.ok()) {
      sets.push_back(std::move(set));
    } else {
      NOWCALLS_RETURN_IF_ERROR(KeepRecovered(set.name_space, loaded.problem));
    }
  }
  // 3. All sets at once, so that a flow may move between files.
  return PutSetsInForce(std::move(sets));
}

Status ConfiguredRules::PutSetsInForce(std::vector<core::RuleSet> sets) {
  if (engine_->LoadRules(sets, clock_->Now()).ok()) return {};
  // Together failed: each alone, as while the server runs. A refused set does not hold the others
  // up, and a set in force may make room for another, so rounds go on while one succeeds.
  std::map<std::string, Status> refused;
  for (size_t before = sets.size() + 1; !sets.empty() && sets.size() < before;) {
    before = sets.size();
    std::erase_if(sets, [&](const core::RuleSet& set) {
      refused[set.name_space] = engine_->LoadRules({set}, clock_->Now());
      return refused[set.name_space].ok();
    });
  }
  for (const core::RuleSet& set : sets) {
    const Status why = refused[set.name_space].WithContext("rules: " + set.source);
    NOWCALLS_RETURN_IF_ERROR(KeepRecovered(set.name_space, why));
  }
  return {};
}

// A running server would only have warned of such a fault. A start that failed would be repeated by
// its supervisor without end, though the ledger has the rules.
Status ConfiguredRules::KeepRecovered(const std::string& name_space, const Status& why) {
  const auto same = [&](const RuleFile& file) { return file.name_space == name_space; };
  const auto file = std::find_if(config_->rules.begin(), config_->rules.end(), same);
  NOWCALLS_CHECK(file != config_->rules.end());
  // Only rules from this very file may stay; others are not what was asked for.
  const auto recovered = recovered_->find(name_space);
  if (recovered == recovered_->end() || recovered->second != FileSourceName(file->path)) {
    return Status::InvalidArgument(why.message() + "; and the ledger has no rules of namespace " +
                                   Quoted(name_space) + " from this file that could stay in force");
  }
  // The watcher tries the file again, and does not repeat this line.
  at_start_[static_cast<size_t>(file - config_->rules.begin())].is_refused = true;
  sources_.NoteRefused(FileSourceName(file->path), name_space, why);
  LogAt(Severity::kWarn,
        why.message() + "; namespace " + Quoted(name_space) +
            " keeps the rules that the ledger has from " + file->path +
            ". Put that right: the file is loaded as soon as it can be, "
            "without a restart",
        {{"namespace", name_space}, {"file", file->path}, {"reason", why.message()}});
  return {};
}

// The source cannot fail to start: PutInForce has claimed the namespaces.
void ConfiguredRules::Watch(uv_loop_t* loop) {
  NOWCALLS_CHECK(at_start_.size() == config_->rules.size());
  FileRuleSourceOptions options;
  options.takeover = config_->rules_takeover;
  options.strict = config_->rules_strict;
  source_ = std::make_unique<FileRuleSource>(
      loop, config_->rules, at_start_, options,
      [](Severity severity, const std::string& text, const LogFields& fields) {
        LogAt(severity, text, fields);
      });
  NOWCALLS_CHECK(source_->Start(&sources_).ok());
}

void ConfiguredRules::StopWatching() {
  source_->Stop();
  sources_.Stop();
}

void ConfiguredRules::ReloadAll() {
  LogAt(Severity::kInfo, config_->rules.empty() ? "SIGHUP: no rule files are configured"
                                                : "SIGHUP: reloading the rule files");
  source_->ReloadAll();
}

}  // namespace nowcalls::server
