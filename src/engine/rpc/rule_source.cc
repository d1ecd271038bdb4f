#include "engine/rpc/rule_source.h"

#include "core/core.h"

namespace nowcalls::engine::rpc {

Status RpcRuleSource::Start(RuleSink* sink) {
  sink_ = sink;
  return Status::Ok();
}

Result<RuleSink::CheckedSet> RpcRuleSource::Load(std::string_view name_space,
                                                 std::string_view json) {
  if (sink_ == nullptr) return Status::Unavailable("rules are not taken any more");
  Result<RuleSink::CheckedSet> set = sink_->Check(kRpcRuleSource, name_space, json);
  if (set.ok()) NOWCALLS_RETURN_IF_ERROR(sink_->Replace({*set}));
  return set;
}

}  // namespace nowcalls::engine::rpc
