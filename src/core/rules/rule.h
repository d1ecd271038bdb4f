// Rule: a limit on a resource, with the fields of Sentinel's FlowRule and ParamFlowRule, and of
// sentinel-golang's flow.Rule and hotspot.Rule.
//
// Thread: any. The request decides what `count` means: of an acquire it is the level, of a
// `request` it is calls a second. Some fields have no effect here; clients act on others.
#ifndef NOWCALLS_CORE_RULES_RULE_H_
#define NOWCALLS_CORE_RULES_RULE_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "nowcalls/flow_kind.h"
#include "nowcalls/param.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

// How `count` becomes the level (Sentinel's clusterConfig.thresholdType).
enum class ThresholdType : uint8_t {
  kAvgLocal = 0,  // count x online sessions of the rule's namespace.
  kGlobal = 1,    // count.
};

// A limit for each value of a parameter.
struct ParamRule {
  // How calls a second are limited.
  enum class Algorithm : uint8_t {
    kWindow,       // Sentinel's ParamFlowRule: a sliding window, as for flows.
    kTokenBucket,  // sentinel-golang's hotspot.Rule, Reject.
    kLeakyBucket,  // sentinel-golang's hotspot.Rule, Throttling; waits up to max_queueing_time_ms.
  };
  // A value with a limit of its own.
  struct Item {
    ParamValue value;
    double count = 0;

    bool operator==(const Item&) const = default;
  };

  Algorithm algorithm = Algorithm::kWindow;
  int32_t index = 0;           // Which argument: the client's to act on.
  std::string key;             // sentinel-golang's paramKey, likewise.
  int64_t burst_count = 0;     // Token bucket: beyond count, at most.
  int64_t duration_ms = 1000;  // Buckets: `count` calls take this long. At least 1000.
  uint32_t values_max = 0;     // Remembered for calls a second, the last used; 0: the default.
  std::vector<Item> items;     // Sorted, no value twice (core/rules/param_items.h).

  bool operator==(const ParamRule&) const = default;
};

struct Rule {
  std::string resource;
  std::string limit_app = "default";
  // What `count` and the items are meant to limit: 0 calls in progress, 1 calls a second
  // (sentinel-golang's metricType, too). Other requests are served, too (core/other_kind.h).
  int32_t grade = 1;
  double count = 0;
  int32_t strategy = 0;
  int32_t control_behavior = 0;
  int32_t warm_up_period_sec = 10;
  int32_t max_queueing_time_ms = 500;  // 500 for FlowRules, 0 for the other kinds.

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
  int64_t max_hold_ms = 0;            // The longest hold of a token, with all keeps; 0: no bound.
  int64_t max_per_client = 0;         // Of the count one session may hold; 0: no cap.
  double max_per_client_percent = 0;  // The same in percent of the level; 0: no cap.
  bool shadow = false;                // Count what would be refused, but grant it.

  // `count` calls in each window_interval_ms, not in each second: our countPerWindow, and every
  // flow.Rule.
  bool count_per_interval = false;
  // A flow.Rule. The next two are only its.
  bool is_go_flow = false;
  int32_t token_calculate_strategy = 0;
  int32_t warm_up_cold_factor = 0;
  std::optional<ParamRule> param;

  FlowKey key() const { return {flow_id, FlowKindIf(param.has_value())}; }
  bool says_rate() const { return grade != 0; }
  // A hotspot.Rule: `count` calls in each duration_ms.
  bool in_buckets() const {
    return param.has_value() && param->algorithm != ParamRule::Algorithm::kWindow;
  }
  // How long calls are counted together.
  int64_t rate_interval_ms() const {
    return in_buckets() ? param->duration_ms : window_interval_ms;
  }
  // Of `share`, the count or an item's; not yet rounded.
  double CallsInInterval(double share) const {
    constexpr double kMsPerSecond = 1000;
    if (count_per_interval || in_buckets()) return share;
    return share * window_interval_ms / kMsPerSecond;
  }
  bool capped() const { return max_per_client > 0 || max_per_client_percent > 0; }
  bool operator==(const Rule&) const = default;
};

// Rounds down, but for the error of binary fractions: 8.2 x 15 is 123. REQUIRES: 0 or more.
inline int64_t WholeCalls(double count) {
  constexpr double kLevelMax = 9e18;
  constexpr double kExactMax = 1e12;
  constexpr double kError = 4 * std::numeric_limits<double>::epsilon();
  if (count < kExactMax) count += count * kError;
  return static_cast<int64_t>(std::min(count, kLevelMax));
}

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULES_RULE_H_
