// RpcRuleSource: the rules that come with rules_load.
//
// Thread: loop. Claims no namespace: a namespace has the source "rpc" once its rules came by RPC.
#ifndef NOWCALLS_ENGINE_RPC_RULE_SOURCE_H_
#define NOWCALLS_ENGINE_RPC_RULE_SOURCE_H_

#include <string_view>

#include "nowcalls/rule_source.h"
#include "nowcalls/status.h"

namespace nowcalls::engine::rpc {

class RpcRuleSource final : public RuleSource {
 public:
  Status Start(RuleSink* sink) override;
  void Stop() override { sink_ = nullptr; }

  // Returns the set in force now, or its error. REQUIRES: between Start and Stop.
  Result<RuleSink::CheckedSet> Load(std::string_view name_space, std::string_view json);

 private:
  RuleSink* sink_ = nullptr;
};

}  // namespace nowcalls::engine::rpc

#endif  // NOWCALLS_ENGINE_RPC_RULE_SOURCE_H_
