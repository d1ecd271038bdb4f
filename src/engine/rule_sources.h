// RuleSources: the rule sources of a program, and the sink that brings their calls to the loop.
//
// Thread: loop. Check: any; the other members of RuleSink: as `at_loop` allows.
#ifndef NOWCALLS_ENGINE_RULE_SOURCES_H_
#define NOWCALLS_ENGINE_RULE_SOURCES_H_

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "nowcalls/rule_source.h"
#include "nowcalls/status.h"

namespace nowcalls::engine {

class RuleSources final : public RuleSink {
 public:
  using Change = std::function<Status(RuleSink*)>;
  // Calls the change on the loop with Engine::RulesAt; returns its status, or why it did not.
  using AtLoop = std::function<Status(const Change&)>;

  explicit RuleSources(AtLoop at_loop);
  // Stops sources that still run.
  ~RuleSources() override;

  // In order, up to the first failure.
  Status Start(const std::vector<std::shared_ptr<RuleSource>>& sources);
  void Stop();

  // RuleSink.
  Result<CheckedSet> Check(std::string_view source, std::string_view name_space,
                           std::string_view json) const override;
  Status Claim(const RuleClaim& claim) override;
  Status Replace(const std::vector<CheckedSet>& sets) override;
  void NoteRefused(std::string_view source, std::string_view name_space,
                   const Status& why) override;

 private:
  const AtLoop at_loop_;
  std::vector<std::shared_ptr<RuleSource>> started_;
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_RULE_SOURCES_H_
