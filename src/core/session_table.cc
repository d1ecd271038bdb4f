#include "core/session_table.h"

#include "base/check.h"

namespace nowcalls::core {

SessionSlot SessionTable::FindNamed(NamespaceSlot name_space, std::string_view client_id) const {
  const auto it = by_name_.find(Name{name_space, std::string(client_id)});
  return it == by_name_.end() ? kNoSession : it->second;
}

SessionSlot SessionTable::FindById(SessionId id) const {
  const auto it = by_id_.find(id.value);
  return it == by_id_.end() ? kNoSession : it->second;
}

std::vector<SessionSlot> SessionTable::FindAll(NamespaceSlot name_space,
                                               std::string_view name) const {
  if (const SessionSlot named = FindNamed(name_space, name); named != kNoSession) return {named};
  std::vector<SessionSlot> slots;
  const Name wanted{name_space, std::string(name)};
  for (auto it = unnamed_.lower_bound({wanted, 0}); it != unnamed_.end(); ++it) {
    if (it->first.first != wanted) break;
    slots.push_back(it->second);
  }
  return slots;
}

SessionSlot SessionTable::Add(SessionId id, ledger::SessionKind kind, NamespaceSlot name_space,
                              std::string_view client_id, int64_t opened_ms) {
  const SessionSlot slot = sessions_.Take();
  SessionState& session = sessions_[slot];
  session.id = id;
  session.kind = kind;
  session.name_space = name_space;
  session.client_id = std::string(client_id);
  session.opened_ms = opened_ms;
  NOWCALLS_CHECK(by_id_.emplace(id.value, slot).second);
  if (kind == ledger::SessionKind::kNamed) {
    NOWCALLS_CHECK(by_name_.emplace(Name{name_space, session.client_id}, slot).second);
  } else {
    unnamed_.emplace(std::pair(Name{name_space, session.client_id}, id.value), slot);
  }
  return slot;
}

void SessionTable::Erase(SessionSlot slot) {
  SessionState& session = sessions_[slot];
  NOWCALLS_CHECK(session.connections == 0 && session.tokens.size == 0 && session.now_calls == 0);
  NOWCALLS_CHECK(session.check_ms == kNotScheduled);
  by_id_.erase(session.id.value);
  if (session.kind == ledger::SessionKind::kNamed) {
    by_name_.erase(Name{session.name_space, session.client_id});
  } else {
    unnamed_.erase({Name{session.name_space, session.client_id}, session.id.value});
  }
  sessions_.Return(slot);
}

}  // namespace nowcalls::core
