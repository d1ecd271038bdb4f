// Rules: the files of the start, and those that change while the server runs.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "core/rule_set.h"
#include "server/logging.h"
#include "server/server.h"

namespace nowcalls::server {

Status Server::LoadRules(std::vector<LoadedRuleFile> files) {
  std::vector<core::RuleSet> sets;
  for (LoadedRuleFile& loaded : files) {
    const RuleFile& file = loaded.file;
    core::RuleSet set{.name_space = file.name_space, .parsed = std::move(loaded.parsed)};
    set.source = FileSourceName(file.path);
    const Status claimed = rule_sink_.Claim(
        {.source = set.source, .name_space = set.name_space, .takeover = config_.rules_takeover});
    if (claimed.code() == StatusCode::kAlreadyExists) {
      return Status::InvalidArgument("rules: " + claimed.message() +
                                     ". Or start with --rules-takeover, which lets the configured "
                                     "files replace such rules");
    }
    if (!claimed.ok()) return Status::InvalidArgument("rules: " + claimed.message());
    rules_at_start_.push_back({.fingerprint = loaded.fingerprint});
    if (loaded.problem.ok()) {
      sets.push_back(std::move(set));
    } else {
      NOWCALLS_RETURN_IF_ERROR(KeepRules(set.name_space, loaded.problem));
    }
  }
  NOWCALLS_RETURN_IF_ERROR(PutInForce(std::move(sets)));
  while (const ledger::CommitBatch* batch = engine_.BeginCommit(Clocks(), Now())) {
    NOWCALLS_RETURN_IF_ERROR(store_->Commit(*batch));
    engine_.OnCommitDone(Now());
  }
  return store_->Sync();
}

Status Server::PutInForce(std::vector<core::RuleSet> sets) {
  if (engine_.LoadRules(sets, Now()).ok()) return {};
  // As while the server runs: one that is refused does not hold the others up, and one that is put
  // in force may make room for another.
  std::map<std::string, Status> refused;
  for (size_t before = sets.size() + 1; !sets.empty() && sets.size() < before;) {
    before = sets.size();
    std::erase_if(sets, [&](const core::RuleSet& set) {
      refused[set.name_space] = engine_.LoadRules({set}, Now());
      return refused[set.name_space].ok();
    });
  }
  for (const core::RuleSet& set : sets) {
    const Status why = refused[set.name_space].WithContext("rules: " + set.source);
    NOWCALLS_RETURN_IF_ERROR(KeepRules(set.name_space, why));
  }
  return {};
}

// A start must not fail for what a running server would only have warned of: its supervisor would
// start it again and again while nobody is served, though the ledger has the rules.
Status Server::KeepRules(const std::string& name_space, const Status& why) {
  const auto same = [&](const RuleFile& file) { return file.name_space == name_space; };
  const auto file = std::find_if(config_.rules.begin(), config_.rules.end(), same);
  NOWCALLS_CHECK(file != config_.rules.end());
  const auto recovered = ledger_->rule_sources.find(name_space);
  if (recovered == ledger_->rule_sources.end() || recovered->second != FileSourceName(file->path)) {
    return Status::InvalidArgument(why.message() + "; and the ledger has no rules of namespace " +
                                   Quoted(name_space) + " from this file that could stay in force");
  }
  rules_at_start_[static_cast<size_t>(file - config_.rules.begin())].is_refused = true;
  LogAt(LogLevel::kWarn, why.message() + "; namespace " + Quoted(name_space) +
                             " keeps the rules that the ledger has from " + file->path +
                             ". Put that right: the file is loaded as soon as it can be, "
                             "without a restart");
  return {};
}

// The namespaces have been claimed already, so that the source cannot fail to start.
void Server::WatchRules() {
  NOWCALLS_CHECK(rules_at_start_.size() == config_.rules.size());
  FileRuleSourceOptions options;
  options.takeover = config_.rules_takeover;
  rule_source_ = std::make_unique<FileRuleSource>(
      &loop_, config_.rules, rules_at_start_, options,
      [](LogLevel level, const std::string& text) { LogAt(level, text); });
  NOWCALLS_CHECK(rule_source_->Start(&rule_sink_).ok());
}

void Server::OnHangup() {
  if (draining()) return;
  LogAt(LogLevel::kInfo, config_.rules.empty() ? "SIGHUP: no rule files are configured"
                                               : "SIGHUP: reloading the rule files");
  rule_source_->ReloadAll();
}

}  // namespace nowcalls::server
