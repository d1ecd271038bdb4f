#include "engine/rule_intake.h"

#include <utility>

#include "core/rule_book.h"
#include "core/rules/rule_check.h"
#include "core/rules/rule_set.h"

namespace nowcalls::engine {

RuleIntake::RuleIntake(core::Core* core, std::function<core::Step()> step)
    : core_(core), step_(std::move(step)) {}

Result<RuleSink::CheckedSet> RuleIntake::Check(std::string_view source, std::string_view name_space,
                                               std::string_view json) const {
  return core::CheckRuleSet(source, name_space, json);
}

Status RuleIntake::Claim(const RuleClaim& claim) { return core_->rule_book().Claim(claim); }

Status RuleIntake::Replace(const std::vector<CheckedSet>& sets) {
  core::RuleSetRefs refs;
  for (const CheckedSet& set : sets) refs.push_back(set.get());
  return core_->ReplaceRules(step_(), refs);
}

void RuleIntake::NoteRefused(std::string_view source, std::string_view name_space,
                             const Status& why) {
  core_->rule_book().NoteRefused(step_().now, source, name_space, why);
}

}  // namespace nowcalls::engine
