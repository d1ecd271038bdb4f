// What an administrator may change: rules, and tokens of others.
#include <string>
#include <utility>

#include "core/rule_json.h"
#include "engine/rpc_handler.h"

namespace nowcalls::engine {

void RpcHandler::Reclaim(const Call& call) {
  wire::ReclaimParams params;
  wire::RequestError error;
  if (!wire::DecodeReclaim(call.request.params, &params, &error)) return ReplyError(call, error);
  ReplyStatus(call, core_->Reclaim(call.turn, TokenId{params.token_id}, params.reason));
}

void RpcHandler::RulesLoad(const Call& call) {
  wire::RulesLoadParams params;
  wire::RequestError error;
  if (!wire::DecodeRulesLoad(call.request.params, &params, &error)) return ReplyError(call, error);
  Result<core::ParsedRules> parsed = core::ParseRules(params.json);
  if (!parsed.ok()) return ReplyError(call, ErrorOf(parsed.status().WithContext("rules_load")));
  const uint64_t loaded = parsed->rules.size();
  const Status replaced = core_->ReplaceRules(
      call.turn, {{.name_space = std::string(params.name_space), .parsed = *std::move(parsed)}});
  if (!replaced.ok()) return ReplyError(call, ErrorOf(replaced.WithContext("rules_load")));
  wire::EncodeRulesLoad(call.request.msgid, loaded, replies_->AfterCommit(call.connection));
}

}  // namespace nowcalls::engine
