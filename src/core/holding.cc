#include "core/holding.h"

#include <algorithm>

namespace nowcalls::core {

TokenStatus Holding::Release(const Step& step, SessionSlot session_slot, TokenId token,
                             TokenScope scope, CallOutcome outcome) {
  const TokenSlot slot = FindInScope(session_slot, token, scope);
  if (slot == kNoToken) return TokenStatus::kAlreadyRelease;
  // Late by the present hold, since the grant or the last keep, and by the rule as it is now. After
  // a restart the hold's beginning is reckoned back from the deadline: a rule that was changed in
  // between may misjudge one release.
  const TokenEntry& entry = tokens_->at(slot);
  const int64_t held_ms = step.now.ms - entry.held_since_ms();
  const bool late = held_ms > flows_->at(entry.flow_slot).resource_timeout_ms;
  absence_->EndToken(step, slot, late ? EndReason::kReleasedLate : EndReason::kReleased, {},
                     outcome);
  return TokenStatus::kReleaseOk;
}

KeepAnswer Holding::Keep(const Step& step, SessionSlot session_slot, TokenId token,
                         TokenScope scope) {
  const TokenSlot slot = FindInScope(session_slot, token, scope);
  if (slot == kNoToken) return {TokenStatus::kAlreadyRelease};
  TokenEntry& entry = tokens_->at(slot);
  Flow& flow = flows_->at(entry.flow_slot);
  const int64_t left_ms = flow.HoldEndMs(entry.issued_ms) - step.now.ms;
  // The longest hold is over: the keep reclaims. OK with nothing left would tell the client
  // nothing, and a deadline moved to now, again and again, would hold up the sweep.
  if (left_ms <= 0) {
    absence_->EndToken(step, slot, EndReason::kResourceTimeout);
    return {TokenStatus::kAlreadyRelease};
  }
  const int64_t hold_ms = std::min(flow.hold_ms, left_ms);
  entry.SetHeldSince(step.now.ms);
  flows_->Count(&flow, [](TokenCounters* c) { ++c->kept; });
  books_->MoveToken(step, slot, step.now.ms + hold_ms, hold_ms);
  return {TokenStatus::kOk, hold_ms, flow.terms()};
}

TokenStatus Holding::Cancel(const Step& step, SessionSlot session_slot, uint64_t request_id) {
  // A cancel may forget several, since it remembers one more; OnTime forgets the rest.
  constexpr uint32_t kForgottenPerCancel = 8;
  const SessionId id = books_->sessions().at(session_slot).id;
  // The id is remembered even if it stands for nothing: its acquire may still be on its way.
  request_ids_->ForgetCancelled(step.now.ms, kForgottenPerCancel);
  request_ids_->Cancel(id, request_id, step.now.ms + books_->options().limits.cancel_remembered_ms);

  // A group has as many tokens as items.
  TokenSlot token = tokens_->FindRequest(session_slot, request_id);
  const WaiterSlot waiter = request_ids_->FindWaiter(id, request_id);
  if (token != kNoToken) {
    for (; token != kNoToken; token = tokens_->FindRequest(session_slot, request_id)) {
      absence_->EndToken(step, token, EndReason::kCancelled);
    }
  } else if (waiter != kNoWaiter) {
    const LaneRef lane = waiting_->queues().at(waiter).lane;
    waiting_->Answer(step, waiter,
                     CountRefusal(flows_, lane, TokenStatus::kBlocked, RefusedBy::kCancelled));
  } else {
    return TokenStatus::kAlreadyRelease;
  }
  return TokenStatus::kReleaseOk;
}

TokenSlot Holding::FindInScope(SessionSlot session_slot, TokenId token, TokenScope scope) const {
  if (session_slot == kNoSession) return kNoToken;
  const TokenSlot slot = tokens_->Find(books_->ids().ToFence(token).value);
  if (slot == kNoToken) return kNoToken;
  const SessionSlot holder = tokens_->at(slot).session_slot;
  if (holder == session_slot) return slot;
  if (scope == TokenScope::kSession) return kNoToken;
  const SessionState& theirs = books_->sessions().at(holder);
  const SessionState& own = books_->sessions().at(session_slot);
  // As in Sentinel, whose clients come back from another port, and so as another session.
  const bool fellow = theirs.kind == ledger::SessionKind::kSentinel &&
                      own.kind == ledger::SessionKind::kSentinel &&
                      theirs.name_space == own.name_space;
  return fellow ? slot : kNoToken;
}

}  // namespace nowcalls::core
