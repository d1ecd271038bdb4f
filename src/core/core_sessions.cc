// Sessions: who is online, and what becomes of the tokens of those who are not.
#include <algorithm>
#include <string>

#include "base/check.h"
#include "core/core.h"

namespace nowcalls::core {

Result<HelloAnswer> Core::Hello(const Turn& turn, std::string_view name_space,
                                const std::optional<std::string_view>& client_id,
                                std::string_view display_id) {
  const Waking waking(this, turn);
  NamespaceSlot space = flows_.FindNamespace(name_space);
  if (space == kNoNamespace && flows_.namespaces() >= options_.limits.namespaces_max) {
    return Status::ResourceExhausted("the server knows " +
                                     std::to_string(options_.limits.namespaces_max) +
                                     " namespaces already (namespaces_max)");
  }
  SessionSlot slot = kNoSession;
  if (client_id.has_value() && space != kNoNamespace) slot = sessions_.FindNamed(space, *client_id);
  if (slot == kNoSession) {
    if (sessions_.size() >= options_.limits.sessions_max) {
      return Status::ResourceExhausted("the server holds " +
                                       std::to_string(options_.limits.sessions_max) +
                                       " sessions already (sessions_max)");
    }
    space = flows_.FindOrAddNamespace(name_space);
    const auto kind =
        client_id.has_value() ? ledger::SessionKind::kNamed : ledger::SessionKind::kConnection;
    slot = sessions_.Add(SessionId{next_fence_++}, kind, space, client_id.value_or(display_id),
                         turn.now.ms);
    ++flows_.name_space(space).sessions;
  }
  SetOnline(slot);
  const SessionState& session = sessions_.at(slot);
  return HelloAnswer{slot, session.id, flows_.name_space(session.name_space).sessions_online,
                     session.tokens.size};
}

void Core::Goodbye(const Turn& turn, SessionSlot slot, uint32_t owner) {
  const Waking waking(this, turn);
  RemoveWaitersOf(owner);
  SessionState& session = sessions_.at(slot);
  NOWCALLS_CHECK(session.connections > 0);
  if (--session.connections > 0) return;
  if (session.kind == ledger::SessionKind::kNamed) {
    --named_online_;
    guard_.WentOffline(turn.now.ms);
  }
  --flows_.name_space(session.name_space).sessions_online;
  WakeNamespace(session.name_space);
  SetOffline(slot, turn.now.ms);
  RetireIfUnused(turn, slot);
}

void Core::SetOnline(SessionSlot slot) {
  SessionState& session = sessions_.at(slot);
  if (walk_.session == slot) EndOfflineWalk();
  DisarmOfflineCheck(slot);
  session.from_before_restart = false;
  session.mass_offline = false;
  if (++session.connections > 1) return;
  if (session.kind == ledger::SessionKind::kNamed) {
    ++named_online_;
    guard_.CameBack(session.offline_since_ms);
  }
  ++flows_.name_space(session.name_space).sessions_online;
  WakeNamespace(session.name_space);
}

void Core::SetOffline(SessionSlot slot, int64_t since_ms) {
  SessionState& session = sessions_.at(slot);
  session.offline_since_ms = since_ms;
  // Without tokens there is nothing to wait for: the check retires the session.
  ArmOfflineCheck(slot,
                  session.tokens.size == 0 ? since_ms : since_ms + session.client_offline_ms_min);
}

// Nothing is left of a session that is offline and holds nothing.
void Core::RetireIfUnused(const Turn& turn, SessionSlot slot) {
  const SessionState& session = sessions_.at(slot);
  if (session.online() || session.tokens.size > 0) return;
  if (walk_.session == slot) EndOfflineWalk();
  DisarmOfflineCheck(slot);
  if (session.in_ledger) turn.batch->SessionClosed(session.id);
  const NamespaceSlot space = session.name_space;
  requests_.ForgetSession(session.id);
  --flows_.name_space(space).sessions;
  sessions_.Erase(slot);
  flows_.EraseNamespaceIfUnused(space);
}

void Core::ArmOfflineCheck(SessionSlot slot, int64_t due_ms) {
  DisarmOfflineCheck(slot);
  sessions_.at(slot).check_ms = due_ms;
  offline_checks_.emplace(due_ms, slot);
}

void Core::DisarmOfflineCheck(SessionSlot slot) {
  SessionState& session = sessions_.at(slot);
  if (session.check_ms == kNotScheduled) return;
  offline_checks_.erase({session.check_ms, slot});
  session.check_ms = kNotScheduled;
}

void Core::BeginOfflineWalk(SessionSlot slot) {
  DisarmOfflineCheck(slot);
  walk_ = OfflineWalk{};
  walk_.session = slot;
  if (sessions_.at(slot).tokens.size > 0) JudgeMass(slot);
  walk_.cursor = {TokenOrder::kSession, sessions_.at(slot).tokens.head};
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
  for (; seen < tokens_max && walk_.session == slot && walk_.cursor.next != kNoToken; ++seen) {
    const TokenSlot token = walk_.cursor.next;
    const int64_t due_ms = OfflineDueMs(turn, token);
    if (due_ms > turn.now.ms) {
      walk_.next_due_ms = std::min(walk_.next_due_ms, due_ms);
      walk_.cursor.next = tokens_.at(token).next(TokenOrder::kSession);
      continue;
    }
    walk_.reclaimed = ++reclaimed;
    EndToken(turn, token, EndReason::kClientOffline);  // Ends the walk with the last token.
  }
  const bool ended_with_session = walk_.session != slot;
  if (!ended_with_session && walk_.cursor.next != kNoToken) return seen;
  if (reclaimed > 0) {
    Note(false, client + " has been offline for " + std::to_string(offline_ms) + " ms: reclaimed " +
                    std::to_string(reclaimed) + (reclaimed == 1 ? " token" : " tokens"));
  }
  if (!ended_with_session) {
    const int64_t next_due_ms = walk_.next_due_ms;
    EndOfflineWalk();
    if (next_due_ms != kNotScheduled) ArmOfflineCheck(slot, next_due_ms);
    RetireIfUnused(turn, slot);
  }
  return seen;
}

// When the token is taken from its offline session, or is to be looked at again; not in the future:
// now.
int64_t Core::OfflineDueMs(const Turn& turn, TokenSlot slot) {
  const TokenEntry& entry = tokens_.at(slot);
  const int64_t due_ms =
      sessions_.at(entry.session).offline_since_ms + flows_.at(entry.flow).client_offline_time_ms;
  if (due_ms > turn.now.ms) return due_ms;
  const ExpireDecision decision = Decide(turn, slot, ExpireCause::kClientOffline);
  if (decision.kind() == ExpireDecision::Kind::kReclaim) return turn.now.ms;
  const int64_t leave_until_ms = turn.now.ms + options_.sweep_interval_ms;
  if (decision.kind() == ExpireDecision::Kind::kLeave) return leave_until_ms;
  return decision.until_ms() > turn.now.ms ? decision.until_ms() : leave_until_ms;
}

void Core::EndOfflineWalk() {
  tokens_.Detach(&walk_.cursor);
  walk_ = OfflineWalk{};
}

// Some rule's clientOfflineTime became this short: absent sessions are looked at when tokens of
// such a rule would be due, if that is sooner than planned. Which of them hold any is for that look
// to find out.
void Core::LowerOfflineTime(int64_t client_offline_time_ms) {
  for (const auto& [id, slot] : sessions_.by_id()) {
    SessionState& session = sessions_.at(slot);
    if (session.tokens.size == 0) continue;
    session.client_offline_ms_min = std::min(session.client_offline_ms_min, client_offline_time_ms);
    if (session.online()) continue;
    const int64_t due_ms = session.offline_since_ms + client_offline_time_ms;
    if (walk_.session == slot) {
      walk_.next_due_ms = std::min(walk_.next_due_ms, due_ms);
    } else if (due_ms < session.check_ms) {
      ArmOfflineCheck(slot, due_ms);
    }
  }
}

}  // namespace nowcalls::core
