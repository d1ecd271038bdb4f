#include "server/rules/configured_rules.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/fingerprint.h"
#include "base/text.h"
#include "core/rules/rule_json.h"
#include "server/log/logging.h"
#include "server/rules/make_remote_document.h"

namespace nowcalls::server {

Status ConfiguredRules::PutInForce(std::vector<LoadedRuleFile> files) {
  std::vector<core::RuleSet> sets;
  NOWCALLS_RETURN_IF_ERROR(TakeFiles(std::move(files), &sets));
  NOWCALLS_RETURN_IF_ERROR(TakeUrls(&sets));
  // All sets at once, so that a flow may move between files.
  return PutSetsInForce(std::move(sets));
}

// A namespace whose rules came by RPC is another's, unless taken over.
Status ConfiguredRules::Claim(const std::string& source, const std::string& name_space) {
  const Status claimed = sources_.Claim(
      {.source = source, .name_space = name_space, .takeover = config_->rules_takeover});
  if (claimed.code() == StatusCode::kAlreadyExists) {
    return Status::InvalidArgument("rules: " + claimed.message() +
                                   ". Or start with --rules-takeover, which lets the configured "
                                   "files replace such rules");
  }
  return claimed.ok() ? claimed : Status::InvalidArgument("rules: " + claimed.message());
}

Status ConfiguredRules::TakeFiles(std::vector<LoadedRuleFile> files,
                                  std::vector<core::RuleSet>* sets) {
  for (LoadedRuleFile& loaded : files) {
    const RuleFile& file = loaded.file;
    core::RuleSet set{.name_space = file.name_space, .parsed = std::move(loaded.parsed)};
    set.source = FileSourceName(file.path);
    NOWCALLS_RETURN_IF_ERROR(Claim(set.source, set.name_space));
    // A valid file becomes a set; a faulty one keeps the ledger's rules from it.
    at_start_.push_back({.fingerprint = loaded.fingerprint});
    if (loaded.problem.ok()) {
      sets->push_back(std::move(set));
    } else {
      NOWCALLS_RETURN_IF_ERROR(KeepRecovered(set.name_space, loaded.problem));
    }
  }
  return Status::Ok();
}

// A restart does not wait for the network: rules of the ledger serve until there is an answer. Nor
// does a takeover, which would end one member after the other: what a URL lacks is asked for later.
Status ConfiguredRules::TakeUrls(std::vector<core::RuleSet>* sets) {
  const bool takes_over = config_->cluster.on() && !recovered_->empty();
  for (const RuleUrl& url : config_->rule_urls) {
    NOWCALLS_RETURN_IF_ERROR(Claim(url.url, url.name_space));
    Result<std::unique_ptr<RemoteDocument>> remote = MakeRemoteDocument(*config_, url);
    if (!remote.ok()) return remote.status().WithContext("rules: " + url.url);
    UrlRules rules{.url = url, .remote = *std::move(remote)};
    if (!takes_over && !HasRecovered(url.name_space, url.url)) {
      Result<core::RuleSet> set = FetchFirst(&rules);
      if (!set.ok()) {
        return {set.status().code(),
                "rules: the " + UrlDocumentName(url) + " " + set.status().message() +
                    "; and the ledger has no rules of namespace " + Quoted(url.name_space) +
                    " from there that could stay in force"};
      }
      sets->push_back(*std::move(set));
    }
    asked_.push_back(std::move(rules));
  }
  return Status::Ok();
}

Result<core::RuleSet> ConfiguredRules::FetchFirst(UrlRules* rules) const {
  const Fetched fetched = rules->remote->Fetch(/*again=*/true);
  if (fetched.outcome != Fetched::Outcome::kRead) return Status::Unavailable(fetched.problem);
  rules->at_start.fingerprint = Fingerprint(fetched.text);
  Result<core::ParsedRules> parsed = core::ParseRules(fetched.text, rules->url.name_space);
  const Status problem =
      parsed.ok() && config_->rules_strict ? parsed->CheckStrict() : parsed.status();
  if (!problem.ok()) return problem.WithContext("is refused");
  core::RuleSet set{.name_space = rules->url.name_space, .parsed = *std::move(parsed)};
  set.source = rules->url.url;
  return set;
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

bool ConfiguredRules::HasRecovered(const std::string& name_space, const std::string& source) const {
  const auto recovered = recovered_->find(name_space);
  return recovered != recovered_->end() && recovered->second == source;
}

// A running server would only have warned of such a fault. A start that failed would be repeated by
// its supervisor without end, though the ledger has the rules.
Status ConfiguredRules::KeepRecovered(const std::string& name_space, const Status& why) {
  const auto same = [&](const RuleFile& file) { return file.name_space == name_space; };
  const auto file = std::find_if(config_->rules.begin(), config_->rules.end(), same);
  // Only rules from this very file may stay; others are not what was asked for. A URL has a set
  // here only if the ledger has none from it.
  if (file == config_->rules.end() || !HasRecovered(name_space, FileSourceName(file->path))) {
    return Status::InvalidArgument(why.message() + "; and the ledger has no rules of namespace " +
                                   Quoted(name_space) + " from this " +
                                   (file == config_->rules.end() ? "URL" : "file") +
                                   " that could stay in force");
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

// The sources cannot fail to start: PutInForce has claimed the namespaces.
void ConfiguredRules::Watch(uv_loop_t* loop) {
  NOWCALLS_CHECK(at_start_.size() == config_->rules.size());
  NOWCALLS_CHECK(asked_.size() == config_->rule_urls.size());
  const auto log = [](Severity severity, const std::string& text, const LogFields& fields) {
    LogAt(severity, text, fields);
  };
  FileRuleSourceOptions options;
  options.takeover = config_->rules_takeover;
  options.strict = config_->rules_strict;
  files_ = std::make_unique<FileRuleSource>(loop, config_->rules, at_start_, options, log);
  NOWCALLS_CHECK(files_->Start(&sources_).ok());
  urls_ = std::make_unique<UrlRuleSource>(loop, std::move(asked_), config_->rules_takeover,
                                          config_->rules_strict, log);
  NOWCALLS_CHECK(urls_->Start(&sources_).ok());
}

void ConfiguredRules::StopWatching() {
  files_->Stop();
  urls_->Stop();
  sources_.Stop();
}

void ConfiguredRules::ReloadAll() {
  const bool any = !config_->rules.empty() || !config_->rule_urls.empty();
  LogAt(Severity::kInfo,
        any ? "SIGHUP: reloading the rule files" : "SIGHUP: no rule files are configured");
  files_->ReloadAll();
  urls_->ReloadAll();
}

}  // namespace nowcalls::server
