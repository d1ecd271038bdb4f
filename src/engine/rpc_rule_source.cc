#include "engine/rpc_rule_source.h"

#include "core/core.h"

namespace nowcalls::engine {

Status RpcRuleSource::Start(RuleSink* sink) {
  sink_ = sink;
  return Status::Ok();
}

Result<uint64_t> RpcRuleSource::Load(std::string_view name_space, std::string_view json) {
  if (sink_ == nullptr) return Status::Unavailable("rules are not taken any more");
  const Result<RuleSink::CheckedSet> set = sink_->Check(kRpcRuleSource, name_space, json);
  if (!set.ok()) return set.status();
  NOWCALLS_RETURN_IF_ERROR(sink_->Replace({*set}));
  return uint64_t{(*set)->parsed.rules.size()};
}

}  // namespace nowcalls::engine
