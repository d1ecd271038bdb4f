#include "core/tables/session_table.h"

#include "base/check.h"

namespace nowcalls::core {
namespace {

using Peers = absl::btree_multiset<std::string>;

bool HasHostOf(const Peers& peers, std::string_view peer) {
  const std::string_view host = HostOf(peer);
  const auto first = peers.lower_bound(std::string(host) + ':');
  return first != peers.end() && HostOf(*first) == host;
}

// The first peer of the next host. Peers of a host stand together: all begin with it and ':'.
Peers::const_iterator BehindHostOf(const Peers& peers, Peers::const_iterator peer) {
  return peers.lower_bound(std::string(HostOf(*peer)) + static_cast<char>(':' + 1));
}

}  // namespace

void SessionState::AddPeer(std::string_view peer) {
  // `hosts` counts distinct hosts: looked up before the peer is in the set.
  if (!HasHostOf(peers, peer)) ++hosts;
  peers.emplace(peer);
}

void SessionState::RemovePeer(std::string_view peer) {
  const auto found = peers.find(std::string(peer));
  NOWCALLS_CHECK(found != peers.end());
  peers.erase(found);
  if (!HasHostOf(peers, peer)) --hosts;
}

std::string_view OtherHost(const SessionState& session, std::string_view host) {
  const Peers& peers = session.peers;
  // A look for each host, not for each connection.
  for (auto it = peers.begin(); it != peers.end(); it = BehindHostOf(peers, it)) {
    if (HostOf(*it) != host) return HostOf(*it);
  }
  return {};
}

const ClientState* SessionTable::FindClient(NamespaceSlot name_space,
                                            std::string_view client_id) const {
  const auto it = clients_.find(Name{name_space, std::string(client_id)});
  return it == clients_.end() ? nullptr : it->second.get();
}

SessionSlot SessionTable::FindNamed(NamespaceSlot name_space, std::string_view client_id,
                                    uint64_t instance) const {
  const ClientState* const client = FindClient(name_space, client_id);
  if (client == nullptr) return kNoSession;
  const auto it = client->by_instance.find(instance);
  return it == client->by_instance.end() ? kNoSession : it->second;
}

SessionSlot SessionTable::FindById(SessionId id) const {
  const auto it = by_id_.find(id.value);
  return it == by_id_.end() ? kNoSession : it->second;
}

std::vector<SessionSlot> SessionTable::FindAll(NamespaceSlot name_space,
                                               std::string_view name) const {
  std::vector<SessionSlot> slots;
  if (const ClientState* const client = FindClient(name_space, name)) {
    slots.reserve(client->by_instance.size());
    for (const auto& [instance, slot] : client->by_instance) slots.push_back(slot);
    return slots;
  }
  // Not a client id: "@HOST:PORT". The port may have served one connection after another.
  const Name wanted{name_space, std::string(name)};
  for (auto it = unnamed_.lower_bound({wanted, 0}); it != unnamed_.end(); ++it) {
    if (it->first.first != wanted) break;
    slots.push_back(it->second);
  }
  return slots;
}

SessionSlot SessionTable::Add(SessionId id, ledger::SessionKind kind, NamespaceSlot name_space,
                              std::string_view client_id, uint64_t instance, int64_t opened_ms) {
  const SessionSlot slot = sessions_.Take();
  SessionState& session = sessions_[slot];
  session.id = id;
  session.kind = kind;
  session.name_space = name_space;
  session.client_id = std::string(client_id);
  session.instance = instance;
  session.opened_ms = opened_ms;
  NOWCALLS_CHECK(by_id_.emplace(id.value, slot).second);
  // The first instance of a client id makes its ClientState, the last one to leave erases it.
  if (kind == ledger::SessionKind::kNamed) {
    std::unique_ptr<ClientState>& client = clients_[Name{name_space, session.client_id}];
    if (client == nullptr) client = std::make_unique<ClientState>();
    session.client = client.get();
    NOWCALLS_CHECK(client->by_instance.emplace(instance, slot).second);
  } else {
    unnamed_.emplace(std::pair(Name{name_space, session.client_id}, id.value), slot);
  }
  return slot;
}

void SessionTable::Erase(SessionSlot slot) {
  SessionState& session = sessions_[slot];
  NOWCALLS_CHECK(session.connections == 0 && session.tokens.size == 0 && session.now_calls == 0);
  // A scheduled check would find another session in the slot.
  NOWCALLS_CHECK(session.check_ms == kNotScheduled);
  by_id_.erase(session.id.value);
  if (session.kind == ledger::SessionKind::kNamed) {
    session.client->by_instance.erase(session.instance);
    if (session.client->by_instance.empty()) {
      clients_.erase(Name{session.name_space, session.client_id});
    }
  } else {
    unnamed_.erase({Name{session.name_space, session.client_id}, session.id.value});
  }
  sessions_.Return(slot);
}

}  // namespace nowcalls::core
