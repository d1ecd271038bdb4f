// Acts of administrators: changing rules, ending tokens of others, stopping a rule's grants,
// backups.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "core/rule_book.h"
#include "core/rule_limits.h"
#include "core/rules/rule_json.h"
#include "core/rules/rule_set.h"
#include "engine/identities.h"
#include "engine/permission.h"
#include "engine/rpc/handlers.h"
#include "wire/admin_messages.h"

namespace nowcalls::engine::rpc {
namespace {

// With an access file the log and the history tell the principal's name.
bool TellsPrincipal(const Call& call) {
  return call.connection->identity.proof != access::Proof::kOpen;
}

core::AdminAct ActOf(const Call& call, std::string_view reason) {
  const access::Identity& identity = call.connection->identity;
  core::AdminAct act{.by = call.connection->peer.name, .reason = reason};
  if (!TellsPrincipal(call)) return act;
  act.principal = identity.principal.name;
  act.proof = access::ProofName(identity.proof);
  act.method = wire::MethodName(call.request.method);
  return act;
}

// Of a line about this call.
LogFields FieldsOf(const Call& call, LogFields more) {
  LogFields fields = {{"peer", call.connection->peer.name}};
  if (TellsPrincipal(call)) {
    fields = engine::FieldsOf(*call.connection);
    fields.push_back({"method", std::string(wire::MethodName(call.request.method))});
  }
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

// "Nothing was left" and "no such flow" wait for the commit, too: the records that ended the tokens
// may be on their way.
void ReplyReclaimed(const Call& call, const Result<core::ReclaimAnswer>& answer) {
  if (!answer.ok()) {
    const std::string_view method = wire::MethodName(call.request.method);
    return ReplyErrorAfterCommit(call, ErrorOf(answer.status().WithContext(std::string(method))));
  }
  wire::EncodeReclaimed(call.request.msgid, {answer->reclaimed, answer->more}, call.AfterCommit());
}

// A load without a change writes nothing, so a peer could repeat it at will. Its lines have the
// topic of the peer, which is limited more strictly than acts of administrators.
void LogUnchanged(const Call& call, std::string_view name_space, const core::ParsedRules& rules) {
  const std::string loaded = "connection " + NameOf(*call.connection) +
                             " loaded the rules of namespace " + Shortened(name_space);
  const LogFields fields = FieldsOf(call, {{"namespace", std::string(name_space)}});
  Driver* const driver = call.service.driver;
  driver->Log(Severity::kInfo, LogTopic::kPeer,
              loaded + ", which changes nothing: " + std::to_string(rules.rules.size()) +
                  " unchanged, " + std::to_string(rules.skipped.count()) + " skipped",
              fields);
  for (const std::string& remark : rules.Remarks()) {
    driver->Log(Severity::kWarn, LogTopic::kPeer, loaded + ": " + remark, fields);
  }
}

}  // namespace

void Reclaim(const Call& call) {
  wire::ReclaimParams params;
  wire::RequestError error;
  if (!wire::DecodeReclaim(call.request.params, &params, &error)) return ReplyError(call, error);
  // Another's token is as one that does not exist, but for the log.
  if (!IsInSight(SightOf(*call.connection), call.core()->books(), TokenId{params.token_id})) {
    call.service.identities->NoteRefused(*call.connection, wire::MethodName(call.request.method),
                                         "is about token " + std::to_string(params.token_id) +
                                             ", which " + call.connection->identity.principal.name +
                                             " may not reach",
                                         /*is_act=*/true, call.step.now);
    return ReplyStatus(call, TokenStatus::kAlreadyRelease);
  }
  ReplyStatus(
      call, call.core()->Reclaim(call.step, TokenId{params.token_id}, ActOf(call, params.reason)));
}

void ReclaimClient(const Call& call) {
  wire::ReclaimClientParams params;
  wire::RequestError error;
  if (!wire::DecodeReclaimClient(call.request.params, &params, &error))
    return ReplyError(call, error);
  if (!MayReach(call, params.name_space)) return;
  ReplyReclaimed(call, call.core()->ReclaimClient(
                           call.step, {params.name_space, params.client_id, params.instance},
                           params.limit, ActOf(call, params.reason), SightOf(*call.connection)));
}

void ReclaimFlow(const Call& call) {
  wire::ReclaimFlowParams params;
  wire::RequestError error;
  if (!wire::DecodeReclaimFlow(call.request.params, &params, &error))
    return ReplyError(call, error);
  FlowChoice choice{FlowId{params.flow_id}, params.kind};
  if (!NarrowToReach(call, params.flow_name, &choice)) return;
  ReplyReclaimed(
      call, call.core()->ReclaimFlow(call.step, choice, params.limit, ActOf(call, params.reason)));
}

void Purge(const Call& call) {
  wire::PurgeParams params;
  wire::RequestError error;
  if (!wire::DecodePurge(call.request.params, &params, &error)) return ReplyError(call, error);
  FlowChoice choice{FlowId{params.flow_id}, params.kind};
  if (!NarrowToReach(call, params.flow_name, &choice)) return;
  ReplyReclaimed(call,
                 call.core()->Purge(call.step, choice, params.limit, ActOf(call, params.reason)));
}

void Drain(const Call& call) {
  wire::DrainParams params;
  wire::RequestError error;
  if (!wire::DecodeDrain(call.request.params, &params, &error)) return ReplyError(call, error);
  FlowChoice choice{FlowId{params.flow_id}, params.kind};
  if (!NarrowToReach(call, params.flow_name, &choice)) return;
  const Result<core::DrainAnswer> answer =
      call.core()->Drain(call.step, choice, params.on, ActOf(call, params.reason));
  if (!answer.ok()) return ReplyError(call, ErrorOf(answer.status().WithContext("drain")));
  wire::EncodeDrain(call.request.msgid,
                    {.status = answer->status,
                     .now_calls = static_cast<uint64_t>(answer->now_calls),
                     .tokens = answer->tokens},
                    call.AfterCommit());
}

void ReclaimNamespace(const Call& call) {
  wire::ReclaimNamespaceParams params;
  wire::RequestError error;
  if (!wire::DecodeReclaimNamespace(call.request.params, &params, &error)) {
    return ReplyError(call, error);
  }
  if (!MayReach(call, params.name_space)) return;
  const core::ReclaimPage page = call.core()->ReclaimNamespace(
      call.step, {params.name_space, static_cast<int64_t>(params.first_flow), params.limit},
      ActOf(call, params.reason));
  wire::EncodeReclaimNamespace(call.request.msgid,
                               {page.reclaimed, static_cast<uint64_t>(page.next_flow)},
                               call.AfterCommit());
}

void DrainNamespace(const Call& call) {
  wire::DrainNamespaceParams params;
  wire::RequestError error;
  if (!wire::DecodeDrainNamespace(call.request.params, &params, &error)) {
    return ReplyError(call, error);
  }
  if (!MayReach(call, params.name_space)) return;
  const Result<core::DrainPage> page = call.core()->DrainNamespace(
      call.step, {params.name_space, static_cast<int64_t>(params.first_flow), params.limit},
      params.on, ActOf(call, params.reason));
  if (!page.ok()) return ReplyError(call, ErrorOf(page.status().WithContext("drain_namespace")));
  wire::EncodeDrainNamespace(call.request.msgid,
                             {.status = page->status,
                              .now_calls = static_cast<uint64_t>(page->now_calls),
                              .tokens = page->tokens,
                              .rules = page->rules,
                              .next_flow = static_cast<uint64_t>(page->next_flow)},
                             call.AfterCommit());
}

void RulesLoad(const Call& call) {
  wire::RulesLoadParams params;
  wire::RequestError error;
  if (!wire::DecodeRulesLoad(call.request.params, &params, &error)) return ReplyError(call, error);
  if (!MayReach(call, params.name_space)) return;
  // 1. Parse, check and replace. The count of changes tells whether the set was in force already.
  const uint64_t changes_before = call.core()->rule_book().set_changes();
  const Result<RuleSink::CheckedSet> loaded =
      call.service.rules.Load(params.name_space, params.json);
  const std::string who = NameOf(*call.connection);
  const std::string name_space = "namespace " + Shortened(params.name_space);
  // 2. A refused set changes nothing: the rules before stay in force.
  if (!loaded.ok()) {
    std::string why = Shortened(loaded.status().message());
    // Errors about other sets name the namespace themselves.
    if (!why.starts_with(name_space)) why = name_space + ": " + why;
    call.service.driver->Log(
        Severity::kWarn, LogTopic::kPeer,
        "connection " + who + " was refused a set of rules: " + why,
        FieldsOf(call, {{"namespace", std::string(params.name_space)}, {"reason", why}}));
    wire::RequestError refused = ErrorOf(loaded.status().WithContext("rules_load"));
    refused.message = core::WithoutOthers(refused.message, SightOf(*call.connection));
    return ReplyError(call, refused);
  }
  // 3. Log the act. The answer waits for the commit, with the rules that it puts in force.
  const core::ParsedRules& rules = (*loaded)->parsed;
  if (call.core()->rule_book().set_changes() != changes_before) {
    call.service.driver->Log(Severity::kInfo, LogTopic::kAct,
                             "administrator " + who + " loaded the rules of " + name_space,
                             FieldsOf(call, {{"namespace", std::string(params.name_space)}}));
  } else {
    LogUnchanged(call, params.name_space, rules);
  }
  wire::EncodeRulesLoad(call.request.msgid, rules.rules.size(), call.AfterCommit());
}

// A file system may hang, so the directory is made beside the loop; the driver logs the outcome.
// AnswerBackup needs the msgid then; owes_answer keeps an ending connection open for it.
void Backup(const Call& call) {
  wire::BackupParams params;
  wire::RequestError error;
  if (!wire::DecodeBackup(call.request.params, &params, &error)) return ReplyError(call, error);
  const Status begun = call.service.driver->BeginBackup({.asker = call.connection->id,
                                                         .by = call.connection->peer.name,
                                                         .to = std::string(params.to)});
  if (!begun.ok()) return ReplyError(call, ErrorOf(begun.WithContext("backup")));
  // The driver's lines know the peer alone.
  if (TellsPrincipal(call)) {
    call.service.driver->Log(Severity::kInfo, LogTopic::kAct,
                             "administrator " + NameOf(*call.connection) +
                                 " asked for a backup to " + Shortened(params.to),
                             FieldsOf(call, {{"reason", Shortened(params.to)}}));
  }
  call.late->backup = call.request.msgid;
  call.connection->owes_answer = true;
}

// A backup in a place of the server's own, from which a member of the cluster takes it in pieces.
void Copy(const Call& call) {
  const Status begun = call.service.driver->BeginBackup(
      {.asker = call.connection->id, .by = call.connection->peer.name, .to = ""});
  if (!begun.ok()) return ReplyError(call, ErrorOf(begun.WithContext("copy")));
  call.late->backup = call.request.msgid;
  call.connection->owes_answer = true;
}

void CopyPiece(const Call& call) {
  wire::CopyPieceParams params;
  wire::RequestError error;
  if (!wire::DecodeCopyPiece(call.request.params, &params, &error)) return ReplyError(call, error);
  const Result<std::string_view> bytes = call.service.driver->ReadCopy(params.file, params.offset);
  if (!bytes.ok()) return ReplyError(call, ErrorOf(bytes.status().WithContext("copy_piece")));
  wire::EncodeCopyPiece(call.request.msgid, *bytes, call.Immediate());
}

// The end begins behind this turn, so that its answers, this one too, are sent.
void Handover(const Call& call) {
  wire::RequestError error;
  if (!wire::DecodeNoParams(call.request.method, call.request.params, &error)) {
    return ReplyError(call, error);
  }
  const std::string who = NameOf(*call.connection);
  const Result<uint64_t> term = call.service.driver->HandOver(who);
  call.service.driver->Log(term.ok() ? Severity::kInfo : Severity::kWarn, LogTopic::kAct,
                           "administrator " + who + " asked for a handover" +
                               (term.ok() ? "" : ", and was refused: " + term.status().message()),
                           FieldsOf(call, {}));
  if (!term.ok()) return ReplyError(call, ErrorOf(term.status().WithContext("handover")));
  wire::EncodePing(call.request.msgid, *term, call.Immediate());
}

}  // namespace nowcalls::engine::rpc
