// Flows in the forms in which Sentinel's dashboard reads resources.
//
// Thread: any; pure. Formats: alibaba/Sentinel 1.8, MetricNode.toThinString, NodeVo and
// ClusterMetricNode. In all of them "pass" is what was granted or passed, and "block" what was
// refused or blocked. "success" are tokens that ended, "rt" is their mean hold in ms, and the
// number of threads is nowCalls. Exceptions are calls whose releases say `failed` or `timeout`.
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

// Lines "timestamp|resource|passQps|blockQps|successQps|exceptionQps|rt|occupiedPassQps|
// concurrency|classification" in the order of time. A second in which nothing happened to a flow
// has no line. Beyond kLinesMax the lines with the fewest calls are left out.
std::string MetricLines(const Snapshot& snapshot, const Series& series, const MetricQuery& query);

// Nodes of an answer; beyond, those with the fewest calls are left out.
inline constexpr size_t kNodesMax = 6'000;

// A JSON array of nodes, one a flow. `idle`: also of flows that nobody asked for a minute and that
// have no tokens.
std::string ClusterNodes(const Snapshot& snapshot, const Series& series, bool idle);

// The same as a tree, parents first: the machine, its namespaces, their flows. It is never empty.
std::string NodeTree(const Snapshot& snapshot, const Series& series);

// A JSON object: the flows of a namespace by resource.
std::string ClusterMetrics(const Snapshot& snapshot, const Series& series,
                           const std::string& name_space);

// Calls of the last whole second that asked for a rate, by namespace.
std::map<std::string, int64_t> CallsOfNamespaces(const Snapshot& snapshot, const Series& series);

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_SENTINEL_NODES_H_
