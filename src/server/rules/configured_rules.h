// ConfiguredRules: the configured rule files, put in force at the start, then watched.
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
#include "server/rules/rule_files.h"

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
  // from it, and is tried again later. Without such rules kInvalidArgument names file, namespace
  // and rule, or the owner; nothing changed.
  Status PutInForce(std::vector<LoadedRuleFile> files);

  // As RuleSources::Start.
  Status StartSources(const std::vector<std::shared_ptr<RuleSource>>& sources) {
    return sources_.Start(sources);
  }

  // REQUIRES: PutInForce with all files.
  void Watch(uv_loop_t* loop);
  // Loads all files again, changed or not, and logs the results.
  void ReloadAll();
  // And the program's sources.
  void StopWatching();
  bool idle() const { return source_->idle(); }

 private:
  Status PutSetsInForce(std::vector<core::RuleSet> sets);
  Status KeepRecovered(const std::string& name_space, const Status& why);

  const ServerConfig* const config_;
  engine::Engine* const engine_;
  const ledger::Clock* const clock_;
  const std::map<std::string, std::string>* const recovered_;
  engine::RuleSources sources_;             // Of the program; the sink of all.
  std::vector<RulesAtStart> at_start_;      // Of config_->rules.
  std::unique_ptr<FileRuleSource> source_;  // None before Watch.
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_RULES_CONFIGURED_RULES_H_
