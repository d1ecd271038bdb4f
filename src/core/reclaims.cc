#include "core/reclaims.h"

#include <string>

namespace nowcalls::core {
namespace {

std::string Tokens(uint32_t count) {
  return std::to_string(count) + (count == 1 ? " token" : " tokens");
}

// ": REASON; more are left"; both parts may be missing.
std::string Behind(const ReclaimAnswer& answer, std::string_view reason) {
  return (reason.empty() ? "" : ": " + std::string(reason)) +
         (answer.more ? "; more are left" : "");
}

LogField FieldOf(FlowId flow) { return {"flow", std::to_string(flow.value), true}; }

}  // namespace

Status NoSuchFlow(const FlowChoice& choice) {
  const std::string id = "flow_id " + std::to_string(choice.id.value);
  if (!choice.kind.has_value()) return Status::NotFound(id + " has neither a rule nor tokens");
  return Status::NotFound(id + " has neither a rule of kind " +
                          std::string(FlowKindName(*choice.kind)) + " nor tokens of one");
}

TokenStatus Reclaims::Reclaim(const Step& step, TokenId token, const AdminAct& act) {
  const TokenSlot slot = tokens_->Find(ids_->ToFence(token).value);
  if (slot == kNoToken) return TokenStatus::kAlreadyRelease;
  const TokenEntry& entry = tokens_->at(slot);
  const FlowKey flow = flows_->at(entry.flow_slot).key();
  // Noted before the end: session and flow may go with their last token.
  const std::string& client_id = sessions_->at(entry.session_slot).client_id;
  notices_->AddAct(
      act,
      "reclaimed token " + std::to_string(token.value) + " of " + FlowText(flow) + " from client " +
          client_id + ": " + std::string(act.reason),
      {{"token", std::to_string(token.value)}, FieldOf(flow.id), {"client", client_id}});
  absence_->EndToken(step, slot, EndReason::kAdmin, NoteOf(act));
  return TokenStatus::kReleaseOk;
}

ReclaimAnswer Reclaims::ReclaimClient(const Step& step, const ClientChoice& client,
                                      uint32_t tokens_max, const AdminAct& act,
                                      const Sight& sight) {
  // Tokens of flows that have moved out of sight, over all sessions of the client. Behind more of
  // these none is found, and `more` ends: a caller that repeats must come to an end.
  constexpr uint32_t kSkippedMax = 50'000;
  uint32_t skipped = 0;
  ReclaimAnswer answer;
  const NamespaceSlot space = flows_->FindNamespace(client.name_space);
  if (space == kNoNamespace) return answer;
  const std::string note = NoteOf(act);
  const std::vector<SessionSlot> slots = sessions_->FindAll(space, client.client_id);
  *looks_ += slots.size();
  for (const SessionSlot slot : slots) {
    if (client.instance.value_or(sessions_->at(slot).instance) != sessions_->at(slot).instance)
      continue;
    // The next one is read before the end: the session may be closed with its last token.
    TokenSlot next = sessions_->at(slot).tokens.head;
    while (next != kNoToken && skipped < kSkippedMax) {
      const TokenSlot token = next;
      next = tokens_->at(token).next(TokenOrder::kSession);
      if (!sight.Has(*flows_, tokens_->at(token).flow_slot)) {
        ++skipped;
        continue;
      }
      answer.more = answer.reclaimed == tokens_max;
      if (answer.more) break;
      absence_->EndToken(step, token, EndReason::kAdmin, note);
      ++answer.reclaimed;
    }
    if (answer.more) break;
  }
  *looks_ += skipped;
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

Result<ReclaimAnswer> Reclaims::ReclaimFlow(const Step& step, const FlowChoice& choice,
                                            uint32_t tokens_max, const AdminAct& act) {
  NOWCALLS_RETURN_IF_ERROR(CheckOneNamespace(*flows_, choice));
  const std::vector<FlowSlot> slots = FindAll(*flows_, choice);
  if (slots.empty()) return NoSuchFlow(choice);
  return EndTokensOfAll(step, slots, tokens_max, EndReason::kAdmin, act);
}

Result<ReclaimAnswer> Reclaims::Purge(const Step& step, const FlowChoice& choice,
                                      uint32_t tokens_max, const AdminAct& act) {
  NOWCALLS_RETURN_IF_ERROR(CheckOneNamespace(*flows_, choice));
  std::vector<FlowSlot> slots = FindAll(*flows_, choice);
  if (slots.empty()) return NoSuchFlow(choice);
  // Of two kinds, one may be removed while the other is in force.
  std::erase_if(slots, [&](FlowSlot slot) { return !flows_->at(slot).removed; });
  if (slots.empty()) {
    return Status::InvalidArgument("flow_id " + std::to_string(choice.id.value) +
                                   " has a rule in force; purge is for flows whose rule was "
                                   "removed: remove the rule first, or use reclaim_flow");
  }
  return EndTokensOfAll(step, slots, tokens_max, EndReason::kRuleRemoved, act);
}

ReclaimAnswer Reclaims::EndTokensOfAll(const Step& step, const std::vector<FlowSlot>& slots,
                                       uint32_t tokens_max, EndReason reason, const AdminAct& act) {
  const bool purges = reason == EndReason::kRuleRemoved;
  const std::string note = NoteOf(act);
  ReclaimAnswer all;
  for (const FlowSlot slot : slots) {
    const FlowKey key = flows_->at(slot).key();
    const ReclaimAnswer answer = EndTokensOf(step, slot, tokens_max - all.reclaimed, reason, note);
    // A notice for each kind that lost tokens.
    all.reclaimed += answer.reclaimed;
    all.more = all.more || answer.more;
    if (answer.reclaimed == 0) continue;
    notices_->AddAct(act,
                     (purges ? "purged " : "reclaimed ") + Tokens(answer.reclaimed) + " of " +
                         FlowText(key) + (purges ? ", whose rule was removed" : "") +
                         Behind(answer, act.reason),
                     {FieldOf(key.id)});
  }
  return all;
}

ReclaimPage Reclaims::ReclaimNamespace(const Step& step, const NamespacePiece& piece,
                                       const AdminAct& act) {
  constexpr uint32_t kFlowsPerPiece = 5000;
  ReclaimPage page;
  const NamespaceSlot space = flows_->FindNamespace(piece.name_space);
  if (space == kNoNamespace) return page;
  auto next = flows_->by_key().lower_bound(FlowKey{FlowId{piece.first_flow}});
  uint32_t looks = 0;
  const std::string note = NoteOf(act);
  // A piece ends at its tokens or at its flows: a walk over flows without tokens takes time, too.
  while (next != flows_->by_key().end() && page.reclaimed < piece.limit && looks < kFlowsPerPiece) {
    ++looks;
    const auto [key, slot] = *next;
    const Flow& flow = flows_->at(slot);
    bool more = false;
    if (flow.name_space == space && flow.tokens.size > 0) {
      const ReclaimAnswer answer =
          EndTokensOf(step, slot, piece.limit - page.reclaimed, EndReason::kAdmin, note);
      page.reclaimed += answer.reclaimed;
      more = answer.more;
    }
    // A flow without a rule is erased with its last token, so the next one is looked up by key.
    next = more ? flows_->by_key().lower_bound(key) : flows_->by_key().upper_bound(key);
  }
  *looks_ += looks;
  if (next != flows_->by_key().end()) page.next_flow = next->first.id.value;
  if (page.reclaimed == 0) return page;
  notices_->AddAct(act,
                   "reclaimed " + Tokens(page.reclaimed) + " of namespace " +
                       std::string(piece.name_space) + ": " + std::string(act.reason),
                   {{"namespace", std::string(piece.name_space)}});
  return page;
}

// Oldest first. A flow whose rule was removed is erased with its last token, so its size is read
// first.
ReclaimAnswer Reclaims::EndTokensOf(const Step& step, FlowSlot slot, uint32_t tokens_max,
                                    EndReason reason, std::string_view note) {
  uint32_t left = flows_->at(slot).tokens.size;
  ReclaimAnswer answer;
  for (; left > 0 && answer.reclaimed < tokens_max; --left, ++answer.reclaimed) {
    absence_->EndToken(step, flows_->at(slot).tokens.head, reason, note);
  }
  answer.more = left > 0;
  return answer;
}

}  // namespace nowcalls::core
