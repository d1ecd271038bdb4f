// Rules: the files of the start, and those that change while the server runs.
#include <string>
#include <utility>

#include "base/check.h"
#include "server/logging.h"
#include "server/server.h"

namespace nowcalls::server {

Status Server::LoadRules(std::vector<LoadedRuleFile> files) {
  std::vector<core::RuleSet> sets;
  for (LoadedRuleFile& loaded : files) {
    const RuleFile& file = loaded.file;
    const std::string source = FileSourceName(file.path);
    const Status claimed = rule_sink_.Claim(
        {.source = source, .name_space = file.name_space, .takeover = config_.rules_takeover});
    if (claimed.code() == StatusCode::kAlreadyExists) {
      return Status::InvalidArgument("rules: " + claimed.message() +
                                     ". Or start with --rules-takeover, which lets the configured "
                                     "files replace such rules");
    }
    if (!claimed.ok()) return Status::InvalidArgument("rules: " + claimed.message());
    core::RuleSet set{.name_space = file.name_space, .parsed = std::move(loaded.parsed)};
    set.source = source;
    sets.push_back(std::move(set));
    rule_fingerprints_.push_back(loaded.fingerprint);
  }
  const Status replaced = engine_.LoadRules(sets, Now());
  if (!replaced.ok()) return Status::InvalidArgument("rules: " + replaced.message());
  while (const ledger::CommitBatch* batch = engine_.BeginCommit(Clocks(), Now())) {
    NOWCALLS_RETURN_IF_ERROR(store_->Commit(*batch));
    engine_.OnCommitDone(Now());
  }
  return store_->Sync();
}

// The namespaces have been claimed already, so that the source cannot fail to start.
void Server::WatchRules() {
  NOWCALLS_CHECK(rule_fingerprints_.size() == config_.rules.size());
  FileRuleSourceOptions options;
  options.takeover = config_.rules_takeover;
  rule_source_ = std::make_unique<FileRuleSource>(
      &loop_, config_.rules, rule_fingerprints_, options,
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
