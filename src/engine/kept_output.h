// KeptOutput: the replies that the driver buffers because their peers do not read them.
//
// Thread: loop. It tells how much is buffered in all, of which connection most, and which
// connection has not taken a byte for longest.
#ifndef NOWCALLS_ENGINE_KEPT_OUTPUT_H_
#define NOWCALLS_ENGINE_KEPT_OUTPUT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/btree_set.h"
#include "base/time.h"
#include "engine/connection.h"

namespace nowcalls::engine {

class KeptOutput {
 public:
  // `kept` bytes of the connection are buffered now.
  void Set(Connection* connection, size_t kept, Instant now);
  // The connection is not among the stalled ones any more, whatever it does.
  void StopClock(Connection* connection);

  size_t total() const { return total_; }
  // The connection of which most is buffered, and the bytes. REQUIRES: total() > 0.
  std::pair<size_t, ConnectionId> Most() const { return *sizes_.rbegin(); }
  // The connection that has not taken a byte for longest, if there is one.
  std::optional<SlowPeer> OldestStalled() const {
    if (stalled_.empty()) return std::nullopt;
    return SlowPeer{Instant{stalled_.begin()->first}, stalled_.begin()->second};
  }

 private:
  size_t total_ = 0;
  absl::btree_set<std::pair<size_t, ConnectionId>> sizes_;
  absl::btree_set<std::pair<int64_t, ConnectionId>> stalled_;
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_KEPT_OUTPUT_H_
