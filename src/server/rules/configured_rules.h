// ConfiguredRules: the configured rule files and URLs, put in force at the start, then watched.
//
// Thread: loop.
#ifndef NOWCALLS_SERVER_RULES_CONFIGURED_RULES_H_
#define NOWCALLS_SERVER_RULES_CONFIGURED_RULES_H_

#include <uv.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/core.h"
#include "core/rules/rule_set.h"
#include "engine/engine.h"
#include "engine/rule_sources.h"
#include "ledger/clock.h"
#include "nowcalls/status.h"
#include "server/config/config.h"
#include "server/rules/file_rule_source.h"
#include "server/rules/rule_documents.h"
#include "server/rules/rule_files.h"
#include "server/rules/url_rule_source.h"

namespace nowcalls::server {

class ConfiguredRules {
 public:
  // All outlive it. `recovered`: rule sources of the ledger, by namespace.
  ConfiguredRules(const ServerConfig* config, engine::Engine* engine, const ledger::Clock* clock,
                  const std::map<std::string, std::string>* recovered)
      : config_(config),
        engine_(engine),
        clock_(clock),
        recovered_(recovered),
        sources_([engine, clock](const engine::RuleSources::Change& change) {
          return change(engine->RulesAt(clock->Now()));
        }) {}

  // Together if possible; the caller commits. A faulty file keeps the rules that the ledger has
  // from it, and is tried again later; a URL is asked only if the ledger has no rules from it.
  // Without such rules kInvalidArgument names file, namespace and rule, or the owner, and
  // kUnavailable the URL; nothing changed.
  Status PutInForce(std::vector<LoadedRuleFile> files);

  // As RuleSources::Start.
  Status StartSources(const std::vector<std::shared_ptr<RuleSource>>& sources) {
    return sources_.Start(sources);
  }

  // REQUIRES: PutInForce with all files.
  void Watch(uv_loop_t* loop);
  // Loads all files and URLs again, changed or not, and logs the results.
  void ReloadAll();
  // And the program's sources.
  void StopWatching();
  // No look at a file and no request to a URL is under way. REQUIRES: StopWatching was called.
  bool idle() const { return files_->idle() && urls_->idle(); }

 private:
  Status Claim(const std::string& source, const std::string& name_space);
  Status TakeFiles(std::vector<LoadedRuleFile> files, std::vector<core::RuleSet>* sets);
  Status TakeUrls(std::vector<core::RuleSet>* sets);
  Result<core::RuleSet> FetchFirst(UrlRules* rules) const;
  Status PutSetsInForce(std::vector<core::RuleSet> sets);
  bool HasRecovered(const std::string& name_space, const std::string& source) const;
  Status KeepRecovered(const std::string& name_space, const Status& why);

  const ServerConfig* const config_;
  engine::Engine* const engine_;
  const ledger::Clock* const clock_;
  const std::map<std::string, std::string>* const recovered_;
  engine::RuleSources sources_;            // Of the program; the sink of all.
  std::vector<RulesAtStart> at_start_;     // Of config_->rules.
  std::vector<UrlRules> asked_;            // Of config_->rule_urls, before Watch.
  std::unique_ptr<FileRuleSource> files_;  // None before Watch, as the next.
  std::unique_ptr<UrlRuleSource> urls_;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_RULES_CONFIGURED_RULES_H_
