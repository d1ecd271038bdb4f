#include "core/reclaims.h"

#include <string>

namespace nowcalls::core {
namespace {

std::string Tokens(uint32_t count) {
  return std::to_string(count) + (count == 1 ? " token" : " tokens");
}

// ": REASON; more are left", of which both parts may be missing.
std::string Behind(const ReclaimAnswer& answer, std::string_view reason) {
  return (reason.empty() ? "" : ": " + std::string(reason)) +
         (answer.more ? "; more are left" : "");
}

LogField FieldOf(FlowId flow) { return {"flow", std::to_string(flow.value), true}; }

Status NoSuchFlow(FlowId flow) {
  return Status::NotFound("flow_id " + std::to_string(flow.value) +
                          " has neither a rule nor tokens");
}

}  // namespace

TokenStatus Reclaims::Reclaim(const Step& step, TokenId token, const AdminAct& act) {
  const TokenSlot slot = books_->tokens().Find(books_->ids().ToFence(token).value);
  if (slot == kNoToken) return TokenStatus::kAlreadyRelease;
  const TokenEntry& entry = books_->tokens().at(slot);
  const FlowId flow = books_->flows().at(entry.flow_slot).id;
  const std::string& client_id = books_->sessions().at(entry.session_slot).client_id;
  notices_->AddAct(act,
                   "reclaimed token " + std::to_string(token.value) + " of flow " +
                       std::to_string(flow.value) + " from client " + client_id + ": " +
                       std::string(act.reason),
                   {{"token", std::to_string(token.value)}, FieldOf(flow), {"client", client_id}});
  absence_->EndToken(step, slot, EndReason::kAdmin, act.reason);
  return TokenStatus::kReleaseOk;
}

ReclaimAnswer Reclaims::ReclaimClient(const Step& step, const ClientChoice& client,
                                      uint32_t tokens_max, const AdminAct& act) {
  ReclaimAnswer answer;
  const NamespaceSlot space = books_->flows().FindNamespace(client.name_space);
  if (space == kNoNamespace) return answer;
  for (const SessionSlot slot : books_->sessions().FindAll(space, client.client_id)) {
    const SessionTable& sessions = books_->sessions();
    if (client.instance.value_or(sessions.at(slot).instance) != sessions.at(slot).instance)
      continue;
    // The session itself may be closed with its last token.
    uint32_t left = sessions.at(slot).tokens.size;
    for (; left > 0 && answer.reclaimed < tokens_max; --left, ++answer.reclaimed) {
      absence_->EndToken(step, sessions.at(slot).tokens.head, EndReason::kAdmin, act.reason);
    }
    answer.more = answer.more || left > 0;
  }
  if (answer.reclaimed == 0) return answer;
  const std::string client_id(client.client_id);
  const std::string name_space(client.name_space);
  const std::string instance =
      client.instance.has_value() ? ", instance " + std::to_string(*client.instance) : "";
  notices_->AddAct(act,
                   "reclaimed " + Tokens(answer.reclaimed) + " of client " + client_id + instance +
                       " of namespace " + name_space + Behind(answer, act.reason),
                   {{"client", client_id}, {"namespace", name_space}});
  return answer;
}

Result<ReclaimAnswer> Reclaims::ReclaimFlow(const Step& step, FlowId flow, uint32_t tokens_max,
                                            const AdminAct& act) {
  const FlowSlot slot = books_->flows().Find(flow);
  if (slot == kNoFlow) return NoSuchFlow(flow);
  const ReclaimAnswer answer = EndTokensOf(step, slot, tokens_max, EndReason::kAdmin, act.reason);
  if (answer.reclaimed > 0) {
    notices_->AddAct(act,
                     "reclaimed " + Tokens(answer.reclaimed) + " of flow " +
                         std::to_string(flow.value) + Behind(answer, act.reason),
                     {FieldOf(flow)});
  }
  return answer;
}

Result<ReclaimAnswer> Reclaims::Purge(const Step& step, FlowId flow, uint32_t tokens_max,
                                      const AdminAct& act) {
  const FlowSlot slot = books_->flows().Find(flow);
  if (slot == kNoFlow) return NoSuchFlow(flow);
  if (!books_->flows().at(slot).removed) {
    return Status::InvalidArgument("flow_id " + std::to_string(flow.value) +
                                   " has a rule in force; purge is for flows whose rule was "
                                   "removed: remove the rule first, or use reclaim_flow");
  }
  const ReclaimAnswer answer =
      EndTokensOf(step, slot, tokens_max, EndReason::kRuleRemoved, act.reason);
  if (answer.reclaimed == 0) return answer;
  notices_->AddAct(act,
                   "purged " + Tokens(answer.reclaimed) + " of flow " + std::to_string(flow.value) +
                       ", whose rule was removed" + Behind(answer, act.reason),
                   {FieldOf(flow)});
  return answer;
}

// The oldest come first. A flow whose rule was removed is erased with its last token.
ReclaimAnswer Reclaims::EndTokensOf(const Step& step, FlowSlot slot, uint32_t tokens_max,
                                    EndReason reason, std::string_view note) {
  const FlowTable& flows = books_->flows();
  uint32_t left = flows.at(slot).tokens.size;
  ReclaimAnswer answer;
  for (; left > 0 && answer.reclaimed < tokens_max; --left, ++answer.reclaimed) {
    absence_->EndToken(step, flows.at(slot).tokens.head, reason, note);
  }
  answer.more = left > 0;
  return answer;
}

}  // namespace nowcalls::core
