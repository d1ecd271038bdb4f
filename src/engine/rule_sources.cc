#include "engine/rule_sources.h"

#include <utility>

#include "core/rules/rule_check.h"

namespace nowcalls::engine {

RuleSources::RuleSources(AtLoop at_loop) : at_loop_(std::move(at_loop)) {}

RuleSources::~RuleSources() { Stop(); }

Status RuleSources::Start(const std::vector<std::shared_ptr<RuleSource>>& sources) {
  for (const auto& source : sources) {
    NOWCALLS_RETURN_IF_ERROR(source->Start(this).WithContext("a rule source of the program"));
    started_.push_back(source);
  }
  return {};
}

void RuleSources::Stop() {
  for (const auto& source : std::exchange(started_, {})) source->Stop();
}

Result<RuleSink::CheckedSet> RuleSources::Check(std::string_view source,
                                                std::string_view name_space,
                                                std::string_view json) const {
  return core::CheckRuleSet(source, name_space, json);
}

Status RuleSources::Claim(const RuleClaim& claim) {
  return at_loop_([&](RuleSink* rules) { return rules->Claim(claim); });
}

Status RuleSources::Replace(const std::vector<CheckedSet>& sets) {
  return at_loop_([&](RuleSink* rules) { return rules->Replace(sets); });
}

void RuleSources::NoteRefused(std::string_view source, std::string_view name_space,
                              const Status& why) {
  (void)at_loop_([&](RuleSink* rules) {
    rules->NoteRefused(source, name_space, why);
    return Status::Ok();
  });
}

}  // namespace nowcalls::engine
