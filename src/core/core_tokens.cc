// Tokens: release, keep, and the one way in which a token begins, moves and ends.
#include <algorithm>
#include <string>

#include "base/check.h"
#include "core/core.h"

namespace nowcalls::core {

TokenStatus Core::Release(const Turn& turn, SessionSlot session, TokenId token) {
  const Waking waking(this, turn);
  const TokenSlot slot = FindOwned(session, token);
  if (slot == kNoToken) return TokenStatus::kAlreadyRelease;
  EndToken(turn, slot,
           IsLate(tokens_.at(slot), turn.now) ? EndReason::kReleasedLate : EndReason::kReleased);
  return TokenStatus::kReleaseOk;
}

KeepAnswer Core::Keep(const Turn& turn, SessionSlot session, TokenId token) {
  const TokenSlot slot = FindOwned(session, token);
  if (slot == kNoToken) return {TokenStatus::kAlreadyRelease, 0};
  const int64_t hold_ms = HoldOf(tokens_.at(slot));
  tokens_.at(slot).SetHeldSince(turn.now.ms);
  Count(&flows_.at(tokens_.at(slot).flow), [](FlowCounters* c) { ++c->kept; });
  MoveToken(turn, slot, turn.now.ms + hold_ms, hold_ms);
  return {TokenStatus::kOk, hold_ms};
}

TokenSlot Core::IssueToken(const Turn& turn, SessionSlot session_slot, FlowSlot flow_slot,
                           uint32_t count, uint64_t request_id) {
  SessionState& session = sessions_.at(session_slot);
  const Flow& flow = flows_.at(flow_slot);
  if (!session.in_ledger) {
    session.in_ledger = true;
    turn.batch->SessionOpened({session.id, session.kind, session.opened_ms,
                               flows_.name_space(session.name_space).name, session.client_id});
  }
  const Fence fence{next_fence_++};
  const TokenSlot slot = tokens_.Insert(fence.value);
  TokenEntry& entry = tokens_.at(slot);
  entry.deadline_ms = turn.now.ms + flow.hold_ms;
  entry.family = static_cast<uint8_t>(ledger::FamilyForHold(flow.hold_ms));
  entry.issued_ms = turn.now.ms;
  entry.count = count;
  entry.flow = flow_slot;
  entry.session = session_slot;
  if (request_id != 0) tokens_.SetRequest(slot, request_id);
  tokens_.Link(slot, &flows_.at(flow_slot).tokens, &session.tokens);
  CountIn(entry);
  Count(&flows_.at(flow_slot), [](FlowCounters* c) { ++c->granted; });
  turn.batch->TokenIssued(LedgerToken(slot));
  return slot;
}

// The books that a live token is in: flow, session, sums, deadlines.
void Core::CountIn(const TokenEntry& entry) {
  Flow& flow = flows_.at(entry.flow);
  SessionState& session = sessions_.at(entry.session);
  flow.now_calls += entry.count;
  session.now_calls += entry.count;
  if (flow.held_by_session != nullptr) (*flow.held_by_session)[entry.session] += entry.count;
  session.client_offline_ms_min =
      std::min(session.client_offline_ms_min, flow.client_offline_time_ms);
  live_count_sum_ += entry.count;
  live_fence_sum_ += entry.fence;
  deadlines_.Add(entry.deadline_ms);
}

void Core::EndToken(const Turn& turn, TokenSlot slot, EndReason reason, std::string_view note) {
  const TokenEntry entry = tokens_.at(slot);
  Flow& flow = flows_.at(entry.flow);
  SessionState& session = sessions_.at(entry.session);
  turn.batch->TokenEnded(KeyOf(entry), reason);
  RecordEnd(turn, entry, reason, note);
  deadlines_.Remove(entry.deadline_ms);
  live_count_sum_ -= entry.count;
  live_fence_sum_ -= entry.fence;
  flow.now_calls -= entry.count;
  session.now_calls -= entry.count;
  NOWCALLS_CHECK(flow.now_calls >= 0 && session.now_calls >= 0);
  if (flow.held_by_session != nullptr) {
    const auto held = flow.held_by_session->find(entry.session);
    if ((held->second -= entry.count) == 0) flow.held_by_session->erase(held);
    ReturnToLine(&flow, entry.session);
  }
  Count(&flow, [&](FlowCounters* c) { ++c->ended[static_cast<size_t>(reason)]; });
  flow.held_times.Add(turn.now.ms - entry.issued_ms);
  tokens_.Erase(slot, &flow.tokens, &session.tokens);
  if (flow.tokens.size == 0 && flow.held_by_session != nullptr) TrackSessions(&flow);
  if (session.tokens.size == 0) session.client_offline_ms_min = kNotScheduled;
  if (flow.tokens.size == 0 && !flow.active()) {
    EraseFlow(turn, entry.flow);
  } else {
    Wake(entry.flow);
  }
  RetireIfUnused(turn, entry.session);
}

void Core::MoveToken(const Turn& turn, TokenSlot slot, int64_t deadline_ms, int64_t hold_ms) {
  TokenEntry& entry = tokens_.at(slot);
  const ledger::TokenKey before = KeyOf(entry);
  const ledger::Family family = ledger::FamilyForHold(hold_ms);
  if (before.deadline_ms == deadline_ms && before.family == family) return;
  deadlines_.Remove(entry.deadline_ms);
  deadlines_.Add(deadline_ms);
  entry.deadline_ms = deadline_ms;
  entry.family = static_cast<uint8_t>(family);
  turn.batch->TokenKept(before, LedgerToken(slot));
}

TokenSlot Core::FindOwned(SessionSlot session, TokenId token) const {
  if (session == kNoSession) return kNoToken;
  const TokenSlot slot = tokens_.Find(ids_.ToFence(token).value);
  if (slot == kNoToken || tokens_.at(slot).session != session) return kNoToken;
  return slot;
}

int64_t Core::HoldOf(const TokenEntry& entry) const { return flows_.at(entry.flow).hold_ms; }

// Later than resourceTimeout after it was issued or last kept.
bool Core::IsLate(const TokenEntry& entry, Instant now) const {
  return now.ms - entry.held_since_ms() > flows_.at(entry.flow).resource_timeout_ms;
}

ledger::TokenKey Core::KeyOf(const TokenEntry& entry) const {
  return {entry.ledger_family(), entry.deadline_ms, IdOf(entry)};
}

ledger::Token Core::LedgerToken(TokenSlot slot) const {
  const TokenEntry& entry = tokens_.at(slot);
  return {.key = KeyOf(entry),
          .flow = flows_.at(entry.flow).id,
          .session = sessions_.at(entry.session).id,
          .count = entry.count,
          .issued_ms = entry.issued_ms,
          .fence = Fence{entry.fence},
          .request_id = tokens_.RequestIdOf(slot)};
}

}  // namespace nowcalls::core
