// What Prometheus' clients tell of their process, by the names of its convention.
//
// Thread: any.
#ifndef NOWCALLS_WEB_PROCESS_METRICS_H_
#define NOWCALLS_WEB_PROCESS_METRICS_H_

#include "web/metric_writer.h"

namespace nowcalls::web {

void WriteProcessMetrics(MetricWriter* writer);

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_PROCESS_METRICS_H_
