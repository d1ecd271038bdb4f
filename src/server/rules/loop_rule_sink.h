// LoopRuleSink: the rule sink of sources on the server's loop.
//
// Thread: loop; Check: any.
#ifndef NOWCALLS_SERVER_RULES_LOOP_RULE_SINK_H_
#define NOWCALLS_SERVER_RULES_LOOP_RULE_SINK_H_

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "core/rules/rule_check.h"
#include "engine/engine.h"
#include "nowcalls/rule_source.h"
#include "nowcalls/status.h"

namespace nowcalls::server {

class LoopRuleSink final : public RuleSink {
 public:
  LoopRuleSink(engine::Engine* engine, std::function<Instant()> now)
      : engine_(engine), now_(std::move(now)) {}

  Result<CheckedSet> Check(std::string_view source, std::string_view name_space,
                           std::string_view json) const override {
    return core::CheckRuleSet(source, name_space, json);
  }
  Status Claim(const RuleClaim& claim) override { return engine_->RulesAt(now_())->Claim(claim); }
  Status Replace(const std::vector<CheckedSet>& sets) override {
    return engine_->RulesAt(now_())->Replace(sets);
  }
  void NoteRefused(std::string_view source, std::string_view name_space,
                   const Status& why) override {
    engine_->RulesAt(now_())->NoteRefused(source, name_space, why);
  }

 private:
  engine::Engine* const engine_;
  const std::function<Instant()> now_;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_RULES_LOOP_RULE_SINK_H_
