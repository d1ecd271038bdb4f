// What a reader may see of a snapshot: the rows of its namespaces.
//
// Thread: any; VisibleSnapshots locks.
#ifndef NOWCALLS_WEB_VISIBLE_H_
#define NOWCALLS_WEB_VISIBLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "access/access.h"
#include "web/snapshot.h"

namespace nowcalls::web {

struct Viewer {
  access::Principal principal{};
  // Streams ask again before each event; nullopt: it may see nothing any more. Empty: as before.
  std::function<std::optional<access::Principal>()> again{};
};

// The same for readers who see the same; empty: all.
std::string SightOf(const access::Principal& principal);

// Figures of the whole server stay. A row is visible if its namespace is, and that of its flow.
SnapshotPtr VisibleTo(const access::Principal& principal, const SnapshotPtr& snapshot);

// Remembers parts of the latest snapshot.
class VisibleSnapshots {
 public:
  static constexpr size_t kFlowsMax = 100'000;  // Of all remembered parts.

  SnapshotPtr For(const access::Principal& principal, const SnapshotPtr& latest);

 private:
  std::mutex mutex_;
  uint64_t of_ = 0;                           // The number of the snapshot.
  std::map<std::string, SnapshotPtr> parts_;  // By SightOf.
  size_t flows_ = 0;
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_VISIBLE_H_
