// KeptOutput: bytes of replies that peers do not read.
//
// Thread: loop. Outputs keeps the bounds.
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
  void Set(Connection* connection, size_t kept, Instant now);
  void StopClock(Connection* connection);  // The connection no longer counts as stalled.

  size_t total() const { return total_; }
  // REQUIRES: total() > 0.
  std::pair<size_t, ConnectionId> Most() const { return *sizes_.rbegin(); }
  // The peer that has taken no byte for longest; nullopt: none.
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
