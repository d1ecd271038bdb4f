// What an administrator may do: change rules, end tokens of others, stop a rule's grants, have a
// backup made.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "core/rule_book.h"
#include "core/rule_json.h"
#include "core/rule_set.h"
#include "engine/rpc_handler.h"
#include "wire/admin_messages.h"

namespace nowcalls::engine {

void RpcHandler::Reclaim(const Call& call) {
  wire::ReclaimParams params;
  wire::RequestError error;
  if (!wire::DecodeReclaim(call.request.params, &params, &error)) return ReplyError(call, error);
  ReplyStatus(call, core_->Reclaim(call.turn, TokenId{params.token_id},
                                   {call.connection->peer, params.reason}));
}

void RpcHandler::ReclaimClient(const Call& call) {
  wire::ReclaimClientParams params;
  wire::RequestError error;
  if (!wire::DecodeReclaimClient(call.request.params, &params, &error))
    return ReplyError(call, error);
  ReplyReclaimed(call, core_->ReclaimClient(call.turn, params.name_space, params.client_id,
                                            params.limit, {call.connection->peer, params.reason}));
}

void RpcHandler::ReclaimFlow(const Call& call) {
  wire::ReclaimFlowParams params;
  wire::RequestError error;
  if (!wire::DecodeReclaimFlow(call.request.params, &params, &error))
    return ReplyError(call, error);
  ReplyReclaimed(call, core_->ReclaimFlow(call.turn, FlowId{params.flow_id}, params.limit,
                                          {call.connection->peer, params.reason}));
}

void RpcHandler::Purge(const Call& call) {
  wire::PurgeParams params;
  wire::RequestError error;
  if (!wire::DecodePurge(call.request.params, &params, &error)) return ReplyError(call, error);
  ReplyReclaimed(call, core_->Purge(call.turn, FlowId{params.flow_id}, params.limit,
                                    {call.connection->peer, params.reason}));
}

void RpcHandler::Drain(const Call& call) {
  wire::DrainParams params;
  wire::RequestError error;
  if (!wire::DecodeDrain(call.request.params, &params, &error)) return ReplyError(call, error);
  const Result<core::DrainAnswer> answer = core_->Drain(
      call.turn, FlowId{params.flow_id}, params.on, {call.connection->peer, params.reason});
  if (!answer.ok()) return ReplyError(call, ErrorOf(answer.status().WithContext("drain")));
  wire::EncodeDrain(call.request.msgid,
                    {.status = answer->status,
                     .now_calls = static_cast<uint64_t>(answer->now_calls),
                     .tokens = answer->tokens},
                    replies_->AfterCommit(call.connection));
}

// Also "nothing was left" and "there is no such flow" wait: what ended the tokens may still be on
// its way.
void RpcHandler::ReplyReclaimed(const Call& call, const Result<core::ReclaimAnswer>& answer) {
  if (!answer.ok()) {
    const std::string_view method = wire::MethodName(call.request.method);
    return ReplyErrorAfterCommit(call, ErrorOf(answer.status().WithContext(std::string(method))));
  }
  wire::EncodeReclaimed(call.request.msgid, {answer->reclaimed, answer->more},
                        replies_->AfterCommit(call.connection));
}

void RpcHandler::RulesLoad(const Call& call) {
  wire::RulesLoadParams params;
  wire::RequestError error;
  if (!wire::DecodeRulesLoad(call.request.params, &params, &error)) return ReplyError(call, error);
  const uint64_t changes_before = core_->rule_book().set_changes();
  const Result<RuleSink::CheckedSet> loaded = rules_.Load(params.name_space, params.json);
  const std::string& peer = call.connection->peer;
  const std::string name_space = "namespace " + Shortened(params.name_space);
  if (!loaded.ok()) {
    std::string why = Shortened(loaded.status().message());
    // What is wrong in view of other sets names the namespace itself.
    if (!why.starts_with(name_space)) why = name_space + ": " + why;
    driver_->Log(LogLevel::kWarn, "connection " + peer + " was refused a set of rules: " + why);
    return ReplyError(call, ErrorOf(loaded.status().WithContext("rules_load")));
  }
  const core::ParsedRules& rules = (*loaded)->parsed;
  if (core_->rule_book().set_changes() != changes_before) {
    driver_->Log(LogLevel::kInfo, "administrator " + peer + " loaded the rules of " + name_space);
  } else {
    LogUnchanged(peer, name_space, rules);
  }
  wire::EncodeRulesLoad(call.request.msgid, rules.rules.size(),
                        replies_->AfterCommit(call.connection));
}

// A load that leaves no trace in the ledger is no act of an administrator, and may be repeated for
// nothing: the lines are about the peer.
void RpcHandler::LogUnchanged(const std::string& peer, const std::string& name_space,
                              const core::ParsedRules& rules) {
  const std::string loaded = "connection " + peer + " loaded the rules of " + name_space;
  driver_->Log(LogLevel::kInfo,
               loaded + ", which changes nothing: " + std::to_string(rules.rules.size()) +
                   " unchanged, " + std::to_string(rules.skipped.count()) + " skipped");
  for (const std::string& remark : rules.Remarks()) {
    driver_->Log(LogLevel::kWarn, loaded + ": " + remark);
  }
}

// Whether the directory can be made is found out beside the loop, since a file system may hang; the
// driver logs what became of it.
void RpcHandler::Backup(const Call& call) {
  wire::BackupParams params;
  wire::RequestError error;
  if (!wire::DecodeBackup(call.request.params, &params, &error)) return ReplyError(call, error);
  const Status begun = driver_->BeginBackup(
      {.asker = call.connection->id, .by = call.connection->peer, .to = std::string(params.to)});
  if (!begun.ok()) return ReplyError(call, ErrorOf(begun.WithContext("backup")));
  call.connection->backup_msgid = call.request.msgid;
}

void RpcHandler::ReplyBackup(Connection* connection, const Result<wire::BackupReply>& made) {
  const std::optional<uint32_t> msgid = std::exchange(connection->backup_msgid, std::nullopt);
  if (connection->closed() || !msgid.has_value()) return;
  wire::OutputBuffer* const out = replies_->Immediate(connection);
  if (made.ok()) return wire::EncodeBackup(*msgid, *made, out);
  wire::EncodeError(*msgid, ErrorOf(made.status().WithContext("backup")), out);
}

}  // namespace nowcalls::engine
