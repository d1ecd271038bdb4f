// Flows as Sentinel's dashboard reads resources.
//
// Thread: any; pure. Formats: alibaba/Sentinel 1.8, MetricNode.toThinString, NodeVo and
// ClusterMetricNode.
#ifndef NOWCALLS_WEB_SENTINEL_NODES_H_
#define NOWCALLS_WEB_SENTINEL_NODES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "web/series.h"
#include "web/snapshot.h"

namespace nowcalls::web {

struct MetricQuery {
  static constexpr size_t kLinesMax = 6'000;

  int64_t from_ms = 0;  // Unix times; both ends belong to it.
  int64_t to_ms = 0;
  std::string resource{};  // Empty: all.
};

// Lines in the order of time, none for an idle second:
//   "timestamp|resource|passQps|blockQps|successQps|exceptionQps|rt|occupiedPassQps|concurrency|
//   classification". Beyond kLinesMax those with fewest calls are left out.
std::string MetricLines(const Snapshot& snapshot, const Series& series, const MetricQuery& query);

// Flows with fewest calls are left out.
inline constexpr size_t kNodesMax = 6'000;

// A JSON array, a node a flow. `idle`: also flows without tokens or a call for a minute.
std::string ClusterNodes(const Snapshot& snapshot, const Series& series, bool idle);

// A tree, parents first: machine, namespaces, flows. Never empty.
std::string NodeTree(const Snapshot& snapshot, const Series& series);

// A JSON object: the flows of a namespace by resource.
std::string ClusterMetrics(const Snapshot& snapshot, const Series& series,
                           const std::string& name_space);

// By namespace, the last whole second's calls of flows with a rate.
std::map<std::string, int64_t> CallsOfNamespaces(const Snapshot& snapshot, const Series& series);

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_SENTINEL_NODES_H_
