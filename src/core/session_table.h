// SessionTable: who holds tokens, by session and by client id.
//
// Thread: loop. A session exists while it has an open connection or live tokens. Slots are stable
// and reused; ids are not, but for those of sessions that never held a token before a crash.
#ifndef NOWCALLS_CORE_SESSION_TABLE_H_
#define NOWCALLS_CORE_SESSION_TABLE_H_

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "core/flow_table.h"
#include "core/token_table.h"
#include "ledger/entities.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

// For moments and durations that are not set.
inline constexpr int64_t kNotScheduled = INT64_MAX;

struct SessionState {
  SessionId id;
  ledger::SessionKind kind = ledger::SessionKind::kNamed;
  NamespaceSlot name_space = kNoNamespace;
  std::string client_id;  // For kConnection the display name, "@HOST:PORT".
  int64_t opened_ms = 0;

  uint32_t connections = 0;
  int64_t offline_since_ms = 0;  // Meaningful while connections == 0.
  // Not back since the server started: its tokens are spared for restart_grace at least.
  bool from_before_restart = false;
  // Went offline in a mass, as the guard has judged.
  bool mass_offline = false;
  bool in_ledger = false;            // A SessionOpened record was written: with its first token.
  int64_t check_ms = kNotScheduled;  // When its offline time is looked at next.
  // No token it holds has a rule with a shorter clientOfflineTime.
  int64_t client_offline_ms_min = kNotScheduled;

  int64_t now_calls = 0;  // Sum of count over `tokens`.
  TokenList tokens;

  bool online() const { return connections > 0; }
};

class SessionTable {
 public:
  // The session of a client id; kNoSession if there is none.
  SessionSlot FindNamed(NamespaceSlot name_space, std::string_view client_id) const;
  SessionSlot FindById(SessionId id) const;
  // All that are shown under the name: one of a client id, or those of connections that were made
  // from the address "@HOST:PORT" one after the other. By ascending id.
  std::vector<SessionSlot> FindAll(NamespaceSlot name_space, std::string_view name) const;

  // A new session without connections. REQUIRES: the id and, for kNamed, the name are free.
  SessionSlot Add(SessionId id, ledger::SessionKind kind, NamespaceSlot name_space,
                  std::string_view client_id, int64_t opened_ms);
  // REQUIRES: no connections and no tokens.
  void Erase(SessionSlot slot);

  SessionState& at(SessionSlot slot) { return sessions_[slot]; }
  const SessionState& at(SessionSlot slot) const { return sessions_[slot]; }
  size_t size() const { return by_id_.size(); }
  // In ascending order of session id.
  const absl::btree_map<uint64_t, SessionSlot>& by_id() const { return by_id_; }

 private:
  using Name = std::pair<NamespaceSlot, std::string>;

  std::deque<SessionState> sessions_;
  std::vector<SessionSlot> free_;
  absl::btree_map<uint64_t, SessionSlot> by_id_;
  absl::flat_hash_map<Name, SessionSlot> by_name_;
  absl::btree_map<std::pair<Name, uint64_t>, SessionSlot> unnamed_;  // By display name and id.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_SESSION_TABLE_H_
