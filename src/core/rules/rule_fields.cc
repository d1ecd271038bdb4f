#include "core/rules/rule_fields.h"

#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "base/limits.h"
#include "base/text.h"
#include "core/rules/json_fields.h"
#include "core/rules/param_fields.h"

namespace nowcalls::core {
namespace {

using nlohmann::json;

void ReadResource(JsonFields* fields, Rule* rule) {
  if (fields->Find("resource") == nullptr) fields->Fail("resource", "is missing");
  fields->String("resource", kResourceBytesMax, &rule->resource);
  if (IsBlank(rule->resource)) fields->Fail("resource", "must not be blank");
  if (!IsPrintable(rule->resource)) fields->Fail("resource", "must not hold control characters");
}

// Of Sentinel's FlowRule.
void ReadFlow(JsonFields* fields, Rule* rule) {
  fields->String("limitApp", kResourceBytesMax, &rule->limit_app);
  fields->Integer("grade", 0, 1, &rule->grade);
  fields->Count("count", &rule->count);
  fields->Integer("strategy", 0, 2, &rule->strategy);
  fields->Integer("controlBehavior", 0, 3, &rule->control_behavior);
  fields->Integer("warmUpPeriodSec", 0, kInt32Max, &rule->warm_up_period_sec);
  fields->Integer("maxQueueingTimeMs", 0, kInt32Max, &rule->max_queueing_time_ms);
}

// Of sentinel-golang's flow.Rule. Go's default for every number is 0.
void ReadGoFlow(JsonFields* fields, Rule* rule) {
  rule->count_per_interval = true;
  rule->is_go_flow = true;
  rule->warm_up_period_sec = 0;
  rule->max_queueing_time_ms = 0;
  fields->Count("threshold", &rule->count);
  fields->Integer("tokenCalculateStrategy", 0, 2, &rule->token_calculate_strategy);
  fields->Integer("controlBehavior", 0, 1, &rule->control_behavior);
  fields->Integer("relationStrategy", 0, 1, &rule->strategy);
  fields->Integer("maxQueueingTimeMs", 0, kInt32Max, &rule->max_queueing_time_ms);
  fields->Integer("warmUpPeriodSec", 0, kInt32Max, &rule->warm_up_period_sec);
  fields->Integer("warmUpColdFactor", 0, kInt32Max, &rule->warm_up_cold_factor);
  int32_t interval_ms = 0;
  fields->Integer("statIntervalInMs", 0, kInt32Max, &interval_ms);
  if (interval_ms > 0) rule->window_interval_ms = interval_ms;
}

// A count, 0 for no cap, or a share of the level: "25%". A string without "%" is refused, since
// "25" may mean either.
void ReadMaxPerClient(JsonFields* fields, Rule* rule) {
  constexpr char kKey[] = "maxPerClient";
  const json* value = fields->Find(kKey);
  if (value == nullptr) return;
  if (!value->is_string()) return fields->Integer(kKey, 0, kCountMax, &rule->max_per_client);
  const auto& text = value->get_ref<const std::string&>();
  const char* const end = text.data() + text.size();
  double percent = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, percent);
  const bool parsed = error == std::errc() && std::string_view(rest, end) == "%";
  if (!parsed || !(percent > 0 && percent <= 100)) {
    return fields->Fail(kKey,
                        "must be a count or a share of the level above 0% and up to 100%, "
                        "such as \"25%\", got " +
                            ExcerptOf(*value));
  }
  rule->max_per_client_percent = percent;
}

// Sentinel's and ours, of every kind.
void ReadCommonCluster(JsonFields* fields, Rule* rule) {
  int32_t threshold_type = 0;
  fields->Integer("flowId", 1, INT64_MAX, &rule->flow_id.value);
  fields->Integer("thresholdType", 0, 1, &threshold_type);
  fields->Bool("fallbackToLocalWhenFail", &rule->fallback_to_local_when_fail);
  fields->Integer("resourceTimeout", 1, kRuleTimeMsMax, &rule->resource_timeout_ms);
  fields->Integer("resourceTimeoutStrategy", 0, 2, &rule->resource_timeout_strategy);
  fields->Integer("acquireRefuseStrategy", 0, 3, &rule->acquire_refuse_strategy);
  fields->Integer("clientOfflineTime", 1, kRuleTimeMsMax, &rule->client_offline_time_ms);
  fields->Integer("maxHoldMs", 0, kRuleTimeMsMax, &rule->max_hold_ms);
  ReadMaxPerClient(fields, rule);
  fields->Bool("shadow", &rule->shadow);
  rule->threshold_type = static_cast<ThresholdType>(threshold_type);
  // The waits for one value would depend on the tokens of all others.
  if (rule->param.has_value() && rule->capped()) {
    fields->Fail("maxPerClient",
                 "must be 0 for a rule with a parameter: it limits each value alone");
  }
}

void ReadWindow(JsonFields* fields, Rule* rule) {
  fields->Integer("sampleCount", 1, kInt32Max, &rule->sample_count);
  fields->Integer("windowIntervalMs", 1, kInt32Max, &rule->window_interval_ms);
  if (rule->window_interval_ms % rule->sample_count != 0) {
    fields->Fail("windowIntervalMs", "must be divisible by sampleCount");
  }
  fields->Bool("countPerWindow", &rule->count_per_interval);
}

// Of a rule that has its interval outside of clusterConfig: ten buckets, or as many as divide it.
void ReadGoWindow(JsonFields* fields, Rule* rule) {
  while (rule->window_interval_ms % rule->sample_count != 0) --rule->sample_count;
  fields->Integer("sampleCount", 1, kInt32Max, &rule->sample_count);
  if (rule->window_interval_ms % rule->sample_count != 0) {
    fields->Fail("sampleCount", "must divide statIntervalInMs");
  }
  if (fields->FindSet("windowIntervalMs") != nullptr) {
    fields->Fail("windowIntervalMs", "is not for a flow.Rule: statIntervalInMs is its interval");
  }
}

void ReadClusterConfig(RuleKind kind, const json& object, Rule* rule, std::string* error) {
  JsonFields fields(object, "clusterConfig.", error);
  switch (kind) {
    case RuleKind::kHotParameter:
      rule->fallback_to_local_when_fail = false;  // ParamFlowClusterConfig's default.
      ReadCommonCluster(&fields, rule);
      ReadWindow(&fields, rule);
      fields.Integer("paramsMaxCapacity", 0, kInt32Max, &rule->param->values_max);
      return;
    case RuleKind::kGoHotParameter: return ReadCommonCluster(&fields, rule);
    case RuleKind::kGoFlow: ReadCommonCluster(&fields, rule); return ReadGoWindow(&fields, rule);
    default:
      ReadCommonCluster(&fields, rule);
      fields.Integer("strategy", 0, kInt32Max, &rule->cluster_strategy);
      return ReadWindow(&fields, rule);
  }
}

// A rule of sentinel-golang says by clusterConfig or clusterMode that it is for a token server.
bool IsForServer(RuleKind kind, const JsonFields& fields) {
  return HasClusterMode(kind) || fields.FindSet("clusterMode") != nullptr;
}

}  // namespace

std::string ReadRuleFields(RuleKind kind, const json& object, Rule* rule) {
  std::string error;
  JsonFields fields(object, "", &error);
  ReadResource(&fields, rule);
  switch (kind) {
    case RuleKind::kHotParameter: ReadParamFlow(object, rule, &error); break;
    case RuleKind::kGoHotParameter: ReadHotspot(object, rule, &error); break;
    case RuleKind::kGoFlow: ReadGoFlow(&fields, rule); break;
    default: ReadFlow(&fields, rule);
  }
  const json* cluster = fields.Find("clusterConfig");
  if (cluster == nullptr && IsForServer(kind, fields)) {
    ReadClusterConfig(kind, json::object(), rule, &error);
  } else if (cluster == nullptr) {
    fields.Fail(
        "clusterConfig",
        "is missing; write \"clusterMode\": true to limit calls here, or false to leave the "
        "rule to clients");
  } else if (!cluster->is_object()) {
    fields.Fail("clusterConfig", "must be an object");
  } else {
    ReadClusterConfig(kind, *cluster, rule, &error);
  }
  return error;
}

}  // namespace nowcalls::core
