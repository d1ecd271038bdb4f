// Strangers: bounds connections that the server does not know, and those that shake hands.
//
// Thread: loop. Each has kStrangerMsMax and kStrangerBytesMax each way to become known. Of too
// many, the oldest of the origin with most is closed; of several such origins the oldest of all.
#ifndef NOWCALLS_ENGINE_STRANGERS_H_
#define NOWCALLS_ENGINE_STRANGERS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "base/limits.h"
#include "base/time.h"
#include "engine/connections.h"

namespace nowcalls::engine {

class Closing;

class Strangers {
 public:
  Strangers(const Limits& limits, Connections* connections, Closing* closing)
      : limits_(limits), connections_(connections), closing_(closing) {}

  // Closes another if there are unidentified_max. REQUIRES: the connection is none.
  void Add(Connection* connection, Instant now);
  // It is known, or gone, or none.
  void Remove(Connection* connection);

  // Bytes taken from a stranger, and made for it. Beyond the bound it is closed.
  void Count(Connection* connection, size_t in, size_t out);
  // Its message is not all there after `in` bytes.
  void CheckIncomplete(Connection* connection, size_t in);

  void CloseOverdue(Instant now);
  Instant NextDeadline() const;
  size_t count() const { return by_age_.size(); }

 private:
  using Order = absl::btree_set<std::pair<uint64_t, ConnectionId>>;  // By arrival.

  struct Crowd {
    size_t size = 0;
    uint64_t oldest = 0;  // Stranger::number.
    std::string origin;

    bool operator<(const Crowd& other) const {
      return size != other.size ? size < other.size : oldest > other.oldest;
    }
  };
  static Crowd CrowdOf(const Order& strangers, const std::string& origin) {
    return {strangers.size(), strangers.begin()->first, origin};
  }

  void MakeRoom();

  const Limits& limits_;
  Connections* const connections_;
  Closing* const closing_;
  uint64_t next_number_ = 0;
  Order by_age_;
  absl::flat_hash_map<std::string, Order> by_origin_;
  // Of by_origin_, without empty ones: the last has most, and of as many the oldest stranger.
  absl::btree_set<Crowd> crowds_;
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_STRANGERS_H_
