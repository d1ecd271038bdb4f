// Connections: every connection by its id.
//
// Thread: loop. Addresses are stable from Add to Remove. Ids are reused.
#ifndef NOWCALLS_ENGINE_CONNECTIONS_H_
#define NOWCALLS_ENGINE_CONNECTIONS_H_

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "engine/connection.h"

namespace nowcalls::engine {

class Connections {
 public:
  Connection* Add(net::Peer peer) {
    if (free_.empty()) {
      free_.push_back(static_cast<ConnectionId>(all_.size()));
      all_.emplace_back();
    }
    const ConnectionId id = free_.back();
    free_.pop_back();
    Connection& connection = all_[id];
    connection.id = id;
    connection.state = ConnectionState::kOpen;
    connection.peer = std::move(peer);
    ++count_;
    return &connection;
  }

  void Remove(Connection* connection) {  // REQUIRES: nothing refers to it.
    free_.push_back(connection->id);
    *connection = Connection{};
    --count_;
  }

  // May be free. REQUIRES: Add returned the id once.
  Connection* Get(ConnectionId id) { return &all_[id]; }
  // REQUIRES: not free.
  Connection* GetUsed(ConnectionId id) {
    NOWCALLS_CHECK(all_[id].state != ConnectionState::kFree);
    return &all_[id];
  }

  uint32_t count() const { return count_; }
  const std::deque<Connection>& all() const { return all_; }  // Free ones included.

 private:
  std::deque<Connection> all_;
  std::vector<ConnectionId> free_;
  uint32_t count_ = 0;
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_CONNECTIONS_H_
