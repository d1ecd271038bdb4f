// Rule: a limit on a resource, with the fields, defaults and validity checks of Sentinel's FlowRule
// and ClusterFlowConfig.
//
// Thread: any; a plain value. The concurrency core uses flow_id, count, threshold_type, the times,
// acquire_refuse_strategy 3 and our own additions; the other fields are kept so that a rule list
// shows what was loaded, or are the client's to act on.
#ifndef NOWCALLS_CORE_RULE_H_
#define NOWCALLS_CORE_RULE_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "nowcalls/types.h"

namespace nowcalls::core {

// How `count` becomes the level (Sentinel's clusterConfig.thresholdType).
enum class ThresholdType : uint8_t {
  kAvgLocal = 0,  // count x online sessions of the rule's namespace.
  kGlobal = 1,    // count.
};

struct Rule {
  std::string resource;
  std::string limit_app = "default";
  int32_t grade = 1;  // 0 concurrency, 1 QPS. Tokens are issued under either, as in Sentinel's
                      // ConcurrentClusterFlowChecker, which does not look at it.
  double count = 0;
  int32_t strategy = 0;
  int32_t control_behavior = 0;
  int32_t warm_up_period_sec = 10;
  int32_t max_queueing_time_ms = 500;

  // clusterConfig
  FlowId flow_id;
  ThresholdType threshold_type = ThresholdType::kAvgLocal;
  bool fallback_to_local_when_fail = true;
  int32_t cluster_strategy = 0;
  int32_t sample_count = 10;
  int32_t window_interval_ms = 1000;
  int64_t resource_timeout_ms = 2000;
  int32_t resource_timeout_strategy = 0;
  int32_t acquire_refuse_strategy = 0;
  int64_t client_offline_time_ms = 2000;

  // Our own additions.
  int64_t max_per_client = 0;         // Of the count one session may hold; 0: no cap.
  double max_per_client_percent = 0;  // The same in percent of the level; 0: no cap.
  bool shadow = false;                // Count what would be refused, but grant it.

  bool capped() const { return max_per_client > 0 || max_per_client_percent > 0; }
  bool operator==(const Rule&) const = default;
};

// How many whole calls a count, its product with sessions or a share of it allows: rounded down,
// but what is below a whole number by no more than binary fractions err is that number: 8.2 x 15 is
// 123.
// REQUIRES: 0 or more.
inline int64_t WholeCalls(double count) {
  constexpr double kLevelMax = 9e18;
  constexpr double kExactMax = 1e12;
  constexpr double kError = 4 * std::numeric_limits<double>::epsilon();
  if (count < kExactMax) count += count * kError;
  return static_cast<int64_t>(std::min(count, kLevelMax));
}

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULE_H_
