#include "engine/rpc/rule_source.h"

#include "core/core.h"

namespace nowcalls::engine::rpc {

Status RpcRuleSource::Start(RuleSink* sink) {
  sink_ = sink;
  return Status::Ok();
}

Result<RuleSink::CheckedSet> RpcRuleSource::Load(std::string_view name_space,
                                                 std::string_view json) {
  Result<RuleSink::CheckedSet> set = sink_->Check(kRpcRuleSource, name_space, json);
  const Status loaded = set.ok() ? sink_->Replace({*set}) : set.status();
  if (loaded.ok()) return set;
  // Operators see in `namespaces` why the rules are not the ones sent last.
  sink_->NoteRefused(kRpcRuleSource, name_space, loaded);
  return loaded;
}

}  // namespace nowcalls::engine::rpc
