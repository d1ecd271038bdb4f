// SessionTable: the holders of tokens, by session and by client id.
//
// Thread: loop. A session exists while it has a connection or live tokens. Slots are stable and
// reused. Ids are not, unless a crash lost a session that never held a token.
#ifndef NOWCALLS_CORE_TABLES_SESSION_TABLE_H_
#define NOWCALLS_CORE_TABLES_SESSION_TABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "core/answers.h"
#include "core/tables/flow_table.h"
#include "core/tables/mass_expiry_guard.h"
#include "core/tables/slot.h"
#include "core/tables/slot_arena.h"
#include "core/tables/spared_tokens.h"
#include "core/tables/token_table.h"
#include "ledger/entities.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

inline constexpr int64_t kNotScheduled = INT64_MAX;

// About an offline session.
struct MassVerdict {
  bool mass = false;      // Went offline in a mass. True until it is back.
  int64_t asked_ms = 0;   // When last asked; 0: not yet.
  int64_t window_ms = 0;  // The window asked about.

  // Whether asking again tells nothing new.
  bool Covers(int64_t offline_since_ms, int64_t wanted_window_ms, int64_t now_ms) const {
    if (mass) return true;
    return window_ms >= wanted_window_ms &&
           (asked_ms == now_ms || asked_ms >= offline_since_ms + wanted_window_ms);
  }
};

// In its namespace, by instance (process).
struct ClientState {
  absl::btree_map<uint64_t, SessionSlot> by_instance;
  uint32_t online = 0;  // Of these.
  bool told = false;    // A second instance was logged, since the client is online.
};

struct SessionState {
  SessionId id;
  ledger::SessionKind kind = ledger::SessionKind::kNamed;
  NamespaceSlot name_space;
  std::string client_id;          // Of others than kNamed "@HOST:PORT", for display.
  uint64_t instance = 0;          // Of the client id; 0 for others.
  ClientState* client = nullptr;  // Of kNamed only; else null.
  int64_t opened_ms = 0;

  uint32_t connections = 0;
  uint32_t waiters = 0;                     // Acquires that wait for room.
  absl::btree_multiset<std::string> peers;  // HOST:PORT of the connections; of kNamed only.
  uint32_t hosts = 0;                       // Of the peers.
  bool told_of_host = false;         // A second host was logged, since the session is online.
  int64_t offline_since_ms = 0;      // Meaningful while connections == 0.
  bool from_before_restart = false;  // Not back since the start: spared for restart_grace.
  MassVerdict mass;                  // While offline.
  MassExpiryGuard::Loss loss;        // MassExpiryGuard's own.
  bool in_ledger = false;            // SessionOpened was recorded, with the first token.
  int64_t check_ms = kNotScheduled;  // When Absence looks at the session next.
  // While offline: no token is due earlier, but for `spared`.
  int64_t walk_ms = kNotScheduled;
  std::unique_ptr<SparedTokens> spared;           // While offline; null: none.
  int64_t client_offline_ms_min = kNotScheduled;  // A lower bound over its tokens' rules.

  int64_t last_message_ms = 0;  // When a message of it last came; 0: not since the server started.
  int64_t now_calls = 0;        // Sum of count over `tokens`.
  TokenList tokens;

  bool online() const { return connections > 0; }
  void AddPeer(std::string_view peer);
  void RemovePeer(std::string_view peer);
  // 0 without a client id.
  size_t instances() const { return client == nullptr ? 0 : client->by_instance.size(); }
};

inline std::string_view HostOf(std::string_view peer) { return peer.substr(0, peer.rfind(':')); }
// The first by name that is not `host`; empty: none.
std::string_view OtherHost(const SessionState& session, std::string_view host);

class SessionTable {
 public:
  // Null: no session.
  const ClientState* FindClient(NamespaceSlot name_space, std::string_view client_id) const;
  SessionSlot FindNamed(NamespaceSlot name_space, std::string_view client_id,
                        uint64_t instance) const;
  SessionSlot FindById(SessionId id) const;
  // The instances of a client id, by instance, or the connections that came from "@HOST:PORT" in
  // turn, by id.
  std::vector<SessionSlot> FindAll(NamespaceSlot name_space, std::string_view name) const;

  // REQUIRES: the id and, for kNamed, the instance of the client id are free.
  SessionSlot Add(SessionId id, ledger::SessionKind kind, NamespaceSlot name_space,
                  std::string_view client_id, uint64_t instance, int64_t opened_ms);
  // REQUIRES: no connections and no tokens.
  void Erase(SessionSlot slot);

  void AddLoss(const Loss& loss) { losses_.push_back(loss); }  // Losses keep their order.
  std::vector<Loss> TakeLosses() { return std::exchange(losses_, {}); }
  bool has_losses() const { return !losses_.empty(); }

  SessionState& at(SessionSlot slot) { return sessions_[slot]; }
  const SessionState& at(SessionSlot slot) const { return sessions_[slot]; }
  size_t size() const { return by_id_.size(); }
  // All slots are below; free ones are offline.
  uint32_t slots() const { return sessions_.used(); }
  const absl::btree_map<uint64_t, SessionSlot>& by_id() const { return by_id_; }  // By session id.

 private:
  using Name = std::pair<NamespaceSlot, std::string>;

  SlotArena<SessionSlot, SessionState, 64> sessions_;
  absl::btree_map<uint64_t, SessionSlot> by_id_;
  absl::flat_hash_map<Name, std::unique_ptr<ClientState>> clients_;
  absl::btree_map<std::pair<Name, uint64_t>, SessionSlot> unnamed_;  // By display name and id.
  std::vector<Loss> losses_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TABLES_SESSION_TABLE_H_
