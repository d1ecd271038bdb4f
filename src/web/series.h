// Series: the last minutes of the flows in use, a point a second.
//
// Thread: any; it locks. Flows idle for kPoints seconds are forgotten. Beyond kFlowsMax a newly
// used flow replaces the one idle for longest, or is not remembered.
#ifndef NOWCALLS_WEB_SERIES_H_
#define NOWCALLS_WEB_SERIES_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "web/snapshot.h"

namespace nowcalls::web {

// Counts are of the second, gauges as of its end.
struct Point {
  int64_t unix_s = 0;
  uint32_t now_calls = 0;
  uint32_t waiting = 0;
  uint32_t granted = 0;
  uint32_t refused = 0;
  uint32_t ended = 0;
  uint32_t exceptions = 0;  // Of those that ended, calls that failed or timed out.
  uint64_t held_ms = 0;     // Sum over the tokens that ended.
};

class Series {
 public:
  static constexpr size_t kFlowsMax = 1'000;
  static constexpr size_t kPoints = 300;

  void Add(const Snapshot& snapshot);

  // The oldest first. FlowKey(): the sum of all flows.
  std::vector<Point> PointsOf(const FlowKey& flow, int64_t from_unix_s = 0) const;
  // Of all remembered flows; both ends included.
  std::map<FlowKey, std::vector<Point>> All(int64_t from_unix_s, int64_t to_unix_s) const;

 private:
  struct Flow {
    std::vector<Point> ring{};  // kPoints at most.
    size_t next = 0;            // Where the next point goes, once the ring is full.
    int64_t used_unix_s = 0;    // When something last happened.

    void Append(const Point& point);
    std::vector<Point> Between(int64_t from_unix_s, int64_t to_unix_s) const;
  };

  // The one idle for longest comes last.
  std::vector<FlowKey> IdleAt(int64_t unix_s) const;

  mutable std::mutex mutex_;
  std::map<FlowKey, Flow> flows_;
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_SERIES_H_
