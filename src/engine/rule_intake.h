// RuleIntake: the RuleSink of all sources. Only recovery, and rule files at start
// (Engine::LoadRules), pass it by.
//
// Thread: loop; Check: any. Rules in force are recorded in the open batch.
#ifndef NOWCALLS_ENGINE_RULE_INTAKE_H_
#define NOWCALLS_ENGINE_RULE_INTAKE_H_

#include <functional>
#include <string_view>
#include <vector>

#include "core/core.h"
#include "nowcalls/rule_source.h"
#include "nowcalls/status.h"

namespace nowcalls::engine {

class RuleIntake final : public RuleSink {
 public:
  // `step`: the moment of the engine's call, and the open batch.
  RuleIntake(core::Core* core, std::function<core::Step()> step);

  Result<CheckedSet> Check(std::string_view source, std::string_view name_space,
                           std::string_view json) const override;
  Status Claim(const RuleClaim& claim) override;
  Status Replace(const std::vector<CheckedSet>& sets) override;
  void NoteRefused(std::string_view source, std::string_view name_space,
                   const Status& why) override;

 private:
  core::Core* const core_;
  const std::function<core::Step()> step_;
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_RULE_INTAKE_H_
