// Sessions: who is there, online or offline (core_absence.cc has what follows from that).
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
  holders_online_.since_ms.reset();
  --flows_.name_space(session.name_space).sessions_online;
  WakeNamespace(session.name_space);
  SetOffline(slot, turn.now.ms);
  // The guard is for sessions that can come back, and have something to come back for.
  if (session.kind == ledger::SessionKind::kNamed && session.tokens.size > 0) {
    guard_.WentOffline(&session.loss, turn.now.ms);
  }
  RetireIfUnused(turn, slot);
}

void Core::SetOnline(SessionSlot slot) {
  SessionState& session = sessions_.at(slot);
  if (++session.connections > 1) return;
  if (walk_.session == slot) EndOfflineWalk();
  DisarmOfflineCheck(slot);
  session.walk_ms = kNotScheduled;
  session.spared.reset();
  session.from_before_restart = false;
  session.mass = MassVerdict{};
  guard_.CameBack(&session.loss);
  holders_online_.since_ms.reset();
  ++flows_.name_space(session.name_space).sessions_online;
  WakeNamespace(session.name_space);
}

void Core::SetOffline(SessionSlot slot, int64_t since_ms) {
  SessionState& session = sessions_.at(slot);
  session.offline_since_ms = since_ms;
  // Without tokens there is nothing to wait for: the check retires the session.
  session.walk_ms = session.tokens.size == 0 ? since_ms : since_ms + session.client_offline_ms_min;
  ArmOfflineCheck(slot);
}

// Nothing is left of a session that is offline and holds nothing.
void Core::RetireIfUnused(const Turn& turn, SessionSlot slot) {
  SessionState& session = sessions_.at(slot);
  if (session.online() || session.tokens.size > 0) return;
  guard_.Forget(&session.loss);
  if (walk_.session == slot) EndOfflineWalk();
  DisarmOfflineCheck(slot);
  if (session.in_ledger) turn.batch->SessionClosed(session.id);
  const NamespaceSlot space = session.name_space;
  requests_.ForgetSession(session.id);
  --flows_.name_space(space).sessions;
  sessions_.Erase(slot);
  flows_.EraseNamespaceIfUnused(space);
}

}  // namespace nowcalls::core
