// Metrics: /metrics for Prometheus.
//
// Thread: any.
#ifndef NOWCALLS_WEB_METRICS_H_
#define NOWCALLS_WEB_METRICS_H_

#include <span>

#include "web/board.h"
#include "web/http.h"
#include "web/snapshot.h"
#include "wire/figures.h"

namespace nowcalls::web {

inline constexpr size_t kMetricFlowsDefault = 1'000;
inline constexpr size_t kMetricFlowsMax = 20'000;

// Query: `namespace`, `flow` (an id) and `limit` choose flows; 400 otherwise. `figures`: the table
// behind `info`. `wrong_secrets`: that HTTP got. Flows follow as the response's stream.
Response AnswerMetrics(const Request& request, const SnapshotPtr& snapshot, const Board& board,
                       std::span<const wire::FigureInfo> figures, uint64_t wrong_secrets);

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_METRICS_H_
