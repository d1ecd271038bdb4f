// SnapshotSource: the snapshots that handlers answer from.
//
// Thread: any.
#ifndef NOWCALLS_WEB_SNAPSHOT_SOURCE_H_
#define NOWCALLS_WEB_SNAPSHOT_SOURCE_H_

#include <cstdint>

#include "web/series.h"
#include "web/snapshot.h"

namespace nowcalls::web {

class SnapshotSource {
 public:
  virtual ~SnapshotSource() = default;

  // Never null.
  virtual SnapshotPtr latest() const = 0;
  virtual const Series& series() const = 0;

  // For the next snapshots.
  virtual void WatchFlow(const FlowKey& flow) = 0;
  virtual void WatchSession(uint64_t session) = 0;
  virtual void WatchSessions() = 0;
  virtual void WatchHistory() = 0;
  virtual void WatchRules() = 0;
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_SNAPSHOT_SOURCE_H_
