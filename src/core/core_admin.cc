// What administrators do to tokens and flows. Each call does a bounded piece and says whether there
// is more, so that the loop is never held up by the size of what is taken back.
#include <algorithm>
#include <string>

#include "core/core.h"

namespace nowcalls::core {
namespace {

std::string Tokens(uint32_t count) {
  return std::to_string(count) + (count == 1 ? " token" : " tokens");
}

std::string Because(std::string_view reason) {
  return reason.empty() ? "" : ": " + std::string(reason);
}

std::string Behind(const ReclaimAnswer& answer, std::string_view reason) {
  return Because(reason) + (answer.more ? "; more are left" : "");
}

Status NoSuchFlow(FlowId flow) {
  return Status::NotFound("flow_id " + std::to_string(flow.value) +
                          " has neither a rule nor tokens");
}

}  // namespace

TokenStatus Core::Reclaim(const Turn& turn, TokenId token, const AdminAct& act) {
  const Waking waking(this, turn);
  const TokenSlot slot = tokens_.Find(ids_.ToFence(token).value);
  if (slot == kNoToken) return TokenStatus::kAlreadyRelease;
  const TokenEntry& entry = tokens_.at(slot);
  NoteAct(act, "reclaimed token " + std::to_string(token.value) + " of flow " +
                   std::to_string(flows_.at(entry.flow).id.value) + " from client " +
                   sessions_.at(entry.session).client_id + ": " + std::string(act.reason));
  EndToken(turn, slot, EndReason::kAdmin, act.reason);
  return TokenStatus::kReleaseOk;
}

ReclaimAnswer Core::ReclaimClient(const Turn& turn, std::string_view name_space,
                                  std::string_view client_id, uint32_t tokens_max,
                                  const AdminAct& act) {
  const Waking waking(this, turn);
  ReclaimAnswer answer;
  const NamespaceSlot space = flows_.FindNamespace(name_space);
  if (space == kNoNamespace) return answer;
  for (const SessionSlot slot : sessions_.FindAll(space, client_id)) {
    // The session itself may go with its last token.
    uint32_t left = sessions_.at(slot).tokens.size;
    for (; left > 0 && answer.reclaimed < tokens_max; --left, ++answer.reclaimed) {
      EndToken(turn, sessions_.at(slot).tokens.head, EndReason::kAdmin, act.reason);
    }
    answer.more = answer.more || left > 0;
  }
  if (answer.reclaimed == 0) return answer;
  NoteAct(act, "reclaimed " + Tokens(answer.reclaimed) + " of client " + std::string(client_id) +
                   " of namespace " + std::string(name_space) + Behind(answer, act.reason));
  return answer;
}

Result<ReclaimAnswer> Core::ReclaimFlow(const Turn& turn, FlowId flow, uint32_t tokens_max,
                                        const AdminAct& act) {
  const Waking waking(this, turn);
  const FlowSlot slot = flows_.Find(flow);
  if (slot == kNoFlow) return NoSuchFlow(flow);
  const ReclaimAnswer answer = EndTokensOf(turn, slot, tokens_max, EndReason::kAdmin, act.reason);
  if (answer.reclaimed > 0) {
    NoteAct(act, "reclaimed " + Tokens(answer.reclaimed) + " of flow " +
                     std::to_string(flow.value) + Behind(answer, act.reason));
  }
  return answer;
}

Result<ReclaimAnswer> Core::Purge(const Turn& turn, FlowId flow, uint32_t tokens_max,
                                  const AdminAct& act) {
  const Waking waking(this, turn);
  const FlowSlot slot = flows_.Find(flow);
  if (slot == kNoFlow) return NoSuchFlow(flow);
  if (!flows_.at(slot).removed) {
    return Status::InvalidArgument("flow_id " + std::to_string(flow.value) +
                                   " has a rule in force; purge is for flows whose rule was "
                                   "removed: remove the rule first, or use reclaim_flow");
  }
  const ReclaimAnswer answer =
      EndTokensOf(turn, slot, tokens_max, EndReason::kRuleRemoved, act.reason);
  if (answer.reclaimed == 0) return answer;
  NoteAct(act, "purged " + Tokens(answer.reclaimed) + " of flow " + std::to_string(flow.value) +
                   ", whose rule was removed" + Behind(answer, act.reason));
  return answer;
}

// The oldest come first. A flow whose rule was removed goes with its last token.
ReclaimAnswer Core::EndTokensOf(const Turn& turn, FlowSlot slot, uint32_t tokens_max,
                                EndReason reason, std::string_view note) {
  uint32_t left = flows_.at(slot).tokens.size;
  ReclaimAnswer answer;
  for (; left > 0 && answer.reclaimed < tokens_max; --left, ++answer.reclaimed) {
    EndToken(turn, flows_.at(slot).tokens.head, reason, note);
  }
  answer.more = left > 0;
  return answer;
}

Result<DrainAnswer> Core::Drain(const Turn& turn, FlowId flow_id, bool on, const AdminAct& act) {
  const Waking waking(this, turn);
  const FlowSlot slot = flows_.Find(flow_id);
  if (slot == kNoFlow || !flows_.at(slot).active()) return DrainAnswer{};
  Flow& flow = flows_.at(slot);
  const DrainAnswer answer{TokenStatus::kOk, flow.now_calls, flow.tokens.size};
  if (flow.draining == on) return answer;
  const uint64_t bytes = disk_low_ ? RuleToJson(*flow.rule).size() : 0;
  NOWCALLS_RETURN_IF_ERROR(CheckRoomForRules(bytes));
  rule_bytes_while_low_ += bytes;
  flow.draining = on;
  RecordRule(turn, flow);
  if (on) RefuseWaiters(turn, slot, TokenStatus::kBlocked, RefusedBy::kDraining);
  const std::string id = std::to_string(flow_id.value);
  NoteAct(act, (on ? "began to drain flow " + id + ", " + Tokens(flow.tokens.size) +
                         " with nowCalls " + std::to_string(flow.now_calls) + " are out"
                   : "ended the drain of flow " + id) +
                   Because(act.reason));
  return answer;
}

// REQUIRES: the act changed something, which the ledger records.
void Core::NoteAct(const AdminAct& act, const std::string& text) {
  Note(false, "administrator " + std::string(act.by) + " " + text);
}

}  // namespace nowcalls::core
