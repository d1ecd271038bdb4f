// Absence: when the tokens of offline sessions are due, and what becomes of them.
//
// A session that goes offline gets a check, an entry in offline_checks_, for the first moment at
// which one of its tokens may be due. A token is due when its rule's clientOfflineTime has passed,
// which is the same moment for all tokens that the session has of a flow; then the expire strategy
// is asked. The check walks the session's tokens for those that are due for the first time. Those
// that the strategy spares wait in the session's SparedTokens for the moment it named, so that no
// walk asks about them earlier, and asking again costs what is asked, however much the session
// holds. Rules may change meanwhile: the strategy's moment holds, but nothing is asked of a token
// before its rule says that it is due.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/text.h"
#include "core/core.h"

namespace nowcalls::core {

void Core::ArmOfflineCheck(SessionSlot slot) {
  DisarmOfflineCheck(slot);
  SessionState& session = sessions_.at(slot);
  session.check_ms = NextCheckMs(session);
  if (session.check_ms != kNotScheduled) offline_checks_.emplace(session.check_ms, slot);
}

void Core::DisarmOfflineCheck(SessionSlot slot) {
  SessionState& session = sessions_.at(slot);
  if (session.check_ms == kNotScheduled) return;
  offline_checks_.erase({session.check_ms, slot});
  session.check_ms = kNotScheduled;
}

int64_t Core::NextCheckMs(const SessionState& session) const {
  int64_t next_ms = std::min(session.walk_ms, JudgeDueMs(session));
  return session.spared == nullptr ? next_ms : std::min(next_ms, session.spared->next_ms());
}

void Core::BeginOfflineWalk(const Turn& turn, SessionSlot slot) {
  DisarmOfflineCheck(slot);
  SessionState& session = sessions_.at(slot);
  if (JudgeDueMs(session) <= turn.now.ms) JudgeMass(turn, slot, MassExpiryGuard::kWindowMsMax);
  walk_ = OfflineWalk{};
  walk_.session = slot;
  walk_.began_ms = turn.now.ms;
  walk_.cursor.order = TokenOrder::kSession;
  if (session.walk_ms <= turn.now.ms) {
    walk_.cursor.next = session.tokens.head;
    session.walk_ms = kNotScheduled;  // The walk finds out anew.
  }
  tokens_.Attach(&walk_.cursor);
}

// Looks at up to `tokens_max` tokens of the walked session; returns how many.
uint32_t Core::StepOfflineWalk(const Turn& turn, uint32_t tokens_max) {
  const SessionSlot slot = walk_.session;
  const std::string client = "client " + sessions_.at(slot).client_id + " of namespace " +
                             flows_.name_space(sessions_.at(slot).name_space).name;
  const int64_t offline_ms = turn.now.ms - sessions_.at(slot).offline_since_ms;
  uint64_t reclaimed = walk_.reclaimed;
  uint32_t seen = 0;
  bool more = WalkHasMore();
  while (more && seen < tokens_max && turn.has_room_for_due()) {
    ++seen;
    const TokenSlot token = NextDueInWalk();
    if (token != kNoToken && EndOrSpareOffline(turn, token)) ++reclaimed;
    more = walk_.session == slot && WalkHasMore();  // It ends with the last token.
  }
  const bool ended_with_session = walk_.session != slot;
  if (!ended_with_session) walk_.reclaimed = reclaimed;
  if (more) return seen;
  if (reclaimed > 0) {
    NoteIfRoom(false, client + " has been offline for " + std::to_string(offline_ms) +
                          " ms: reclaimed " + std::to_string(reclaimed) +
                          (reclaimed == 1 ? " token" : " tokens"));
  }
  if (!ended_with_session) {
    EndOfflineWalk();
    ArmOfflineCheck(slot);
    RetireIfUnused(turn, slot);
  }
  return seen;
}

bool Core::WalkHasMore() {
  if (walk_.cursor.next != kNoToken || walk_.spared_next < walk_.spared.size()) return true;
  SparedTokens* spared = sessions_.at(walk_.session).spared.get();
  if (spared == nullptr) return false;
  walk_.spared = spared->TakeDue(walk_.began_ms);
  walk_.spared_next = 0;
  return !walk_.spared.empty();
}

// The next token, or kNoToken when it is not due or gone. REQUIRES: WalkHasMore().
TokenSlot Core::NextDueInWalk() {
  if (walk_.cursor.next == kNoToken) {
    const uint64_t fence = walk_.spared[walk_.spared_next++];
    return tokens_.Find(fence);
  }
  const TokenSlot token = walk_.cursor.next;
  const FlowSlot flow = tokens_.at(token).flow;
  walk_.cursor.next = tokens_.at(token).next(TokenOrder::kSession);
  if (walk_.cursor.next != kNoToken) tokens_.Prefetch(tokens_.at(walk_.cursor.next).fence);
  const auto [due_ms, is_new] = walk_.due_ms.try_emplace(flow, kNotScheduled);
  if (is_new) {
    SessionState& session = sessions_.at(walk_.session);
    const bool asked = session.spared != nullptr && session.spared->Has(flow);
    if (!asked) due_ms->second = OfflineDueMs(walk_.session, flow);
    if (due_ms->second > walk_.began_ms) {
      session.walk_ms = std::min(session.walk_ms, due_ms->second);
    }
  }
  return due_ms->second <= walk_.began_ms ? token : kNoToken;
}

// Whether the token was taken from its offline session.
bool Core::EndOrSpareOffline(const Turn& turn, TokenSlot slot) {
  const TokenEntry& entry = tokens_.at(slot);
  const auto spared = [&session = sessions_.at(entry.session)] {
    if (session.spared == nullptr) session.spared = std::make_unique<SparedTokens>();
    return session.spared.get();
  };
  const int64_t due_ms = OfflineDueMs(entry.session, entry.flow);
  if (due_ms > turn.now.ms) {  // Its rule has become more patient meanwhile.
    spared()->WaitForRule(entry.flow, entry.fence, due_ms);
    return false;
  }
  const ExpireDecision decision = Decide(turn, slot, ExpireCause::kClientOffline);
  if (decision.kind() == ExpireDecision::Kind::kReclaim) {
    turn.batch->CountDue();
    EndToken(turn, slot, EndReason::kClientOffline);
    return true;
  }
  const bool extend = decision.kind() == ExpireDecision::Kind::kExtend;
  spared()->WaitForStrategy(
      entry.flow, entry.fence,
      extend ? decision.until_ms() : turn.now.ms + options_.sweep_interval_ms);
  return false;
}

void Core::EndOfflineWalk() {
  tokens_.Detach(&walk_.cursor);
  walk_ = OfflineWalk{};
}

int64_t Core::OfflineDueMs(SessionSlot session, FlowSlot flow) const {
  return sessions_.at(session).offline_since_ms + flows_.at(flow).client_offline_time_ms;
}

// The clientOfflineTime of some flow with tokens became this short: absent sessions are looked at
// when tokens of such a flow would be due, if that is sooner than planned. Which of them hold any
// is for that look to find out; those that were spared and wait for their rule are due with it.
void Core::LowerOfflineTime(int64_t client_offline_time_ms) {
  for (const auto& [id, slot] : sessions_.by_id()) {
    SessionState& session = sessions_.at(slot);
    if (session.tokens.size == 0) continue;
    session.client_offline_ms_min = std::min(session.client_offline_ms_min, client_offline_time_ms);
    if (session.online()) continue;
    session.walk_ms = std::min(session.walk_ms, session.offline_since_ms + client_offline_time_ms);
    if (session.spared != nullptr) {
      session.spared->BringForward(
          [&, at = slot](FlowSlot flow) { return OfflineDueMs(at, flow); });
    }
    if (walk_.session != slot) ArmOfflineCheck(slot);
  }
}

// Of others nobody knows whether they were cut off, or they cannot come back.
bool Core::CanBeMass(const SessionState& session) const {
  return guard_.enabled() && session.kind == ledger::SessionKind::kNamed &&
         !session.from_before_restart && session.tokens.size > 0;
}

// When the guard must be asked about the offline session although none of its tokens is due: it
// does not remember for as long as a clientOfflineTime may be.
int64_t Core::JudgeDueMs(const SessionState& session) const {
  constexpr int64_t kWindowMs = MassExpiryGuard::kWindowMsMax;
  const int64_t due_ms = session.offline_since_ms + kWindowMs;
  const bool tokens_due_later = session.walk_ms != kNotScheduled && session.walk_ms > due_ms;
  if (!tokens_due_later || !CanBeMass(session)) return kNotScheduled;
  return session.mass.Covers(session.offline_since_ms, kWindowMs, due_ms) ? kNotScheduled : due_ms;
}

// Finds out whether the offline session went offline in a mass, with others within `window_ms` of
// it. While that has not passed the answer may still change.
void Core::JudgeMass(const Turn& turn, SessionSlot slot, int64_t window_ms) {
  SessionState& session = sessions_.at(slot);
  const int64_t since_ms = session.offline_since_ms;
  window_ms = std::min(window_ms, MassExpiryGuard::kWindowMsMax);
  if (!CanBeMass(session) || session.mass.Covers(since_ms, window_ms, turn.now.ms)) return;
  session.mass = {.mass = false, .asked_ms = turn.now.ms, .window_ms = window_ms};
  const MassExpiryGuard::Tally tally = guard_.Count(since_ms, window_ms);
  const uint64_t sessions_max = guard_.SessionsMax(tally.lost);
  if (sessions_max < tally.lost) return;
  const uint64_t sessions = tally.away + HoldersOnline(turn.now.ms, sessions_max - tally.away);
  if (sessions > sessions_max) return;
  session.mass.mass = true;
  ++mass_sessions_;
  if (since_ms <= mass_told_until_ms_) return;
  mass_told_until_ms_ = since_ms + 2 * window_ms;
  ++mass_expiries_;
  // Clients whose clientOfflineTime is a millisecond can bring about hundreds a second.
  if (turn.now.ms < mass_noted_ms_ + kMassNotesApartMs) return;
  mass_noted_ms_ = turn.now.ms;
  Note(true, "mass expiry guard: " + std::to_string(tally.lost) + " of " +
                 std::to_string(sessions) + " sessions with tokens went offline within " +
                 std::to_string(window_ms) +
                 " ms of each other, rather a network cut than a mass death; " +
                 (options_.expire_strategy == nullptr
                      ? "their tokens are kept for " + NumberText(options_.mass_expiry_factor) +
                            " times the clientOfflineTime of their rules"
                      : "the expire strategy decides how long their tokens are kept"));
}

// How many sessions with a client id are online and hold tokens, or did when they last went
// offline, as long as the guard remembers that: so all that it counts are among these or away.
// Stops beyond `sessions_max`, so that a few deaths among many clients take a short look.
uint64_t Core::HoldersOnline(int64_t now_ms, uint64_t sessions_max) {
  HolderCount* count = &holders_online_;
  constexpr int64_t kGoodForMs = 50;
  if (!count->since_ms || now_ms - *count->since_ms >= kGoodForMs) {
    *count = {.since_ms = now_ms, .next = 0, .sessions = 0};
  }
  for (; count->sessions <= sessions_max && count->next < sessions_.slots(); ++count->next) {
    const SessionState& session = sessions_.at(count->next);
    if (!session.online() || session.kind != ledger::SessionKind::kNamed) continue;
    const bool counts = session.tokens.size > 0 || MassExpiryGuard::Remembers(session.loss, now_ms);
    count->sessions += counts ? 1 : 0;
  }
  return count->sessions;
}

}  // namespace nowcalls::core
