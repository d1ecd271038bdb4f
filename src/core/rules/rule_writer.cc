// Rules to JSON: what rules_list answers and the ledger keeps.
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/param_text.h"
#include "base/text.h"
#include "core/rules/rule_json.h"
#include "core/rules/rule_kind.h"

namespace nowcalls::core {
namespace {

using nlohmann::json;

// Writes an object member by member. The loop thread writes rules by the hundred thousand, and a
// document for each would be felt. The library writes strings and doubles.
class ObjectWriter {
 public:
  explicit ObjectWriter(std::string* out) : out_(out) { *out_ += '{'; }

  void Member(std::string_view key, int64_t value) {
    Key(key);
    *out_ += std::to_string(value);
  }
  // A whole number is written as one, as far as every reader keeps its digits.
  void Member(std::string_view key, double value) {
    constexpr double kWholeMax = 9007199254740992;  // 2^53
    if (value >= 0 && value < kWholeMax && std::floor(value) == value) {
      return Member(key, static_cast<int64_t>(value));
    }
    Key(key);
    *out_ += json(value).dump();
  }
  void Member(std::string_view key, bool value) {
    Key(key);
    *out_ += value ? "true" : "false";
  }
  void Member(std::string_view key, const std::string& value) {
    Key(key);
    *out_ += json(value).dump();
  }
  // The caller writes the value.
  void Key(std::string_view key) {
    if (out_->back() != '{') *out_ += ',';
    out_->append("\"").append(key).append("\":");
  }
  void Close() { *out_ += '}'; }

 private:
  std::string* const out_;
};

// What the clusterConfig of every kind has.
class ClusterWriter {
 public:
  ClusterWriter(const Rule& rule, std::string* out) : rule_(rule), cluster_(out) {
    cluster_.Member("flowId", rule.flow_id.value);
    cluster_.Member("thresholdType", int64_t{static_cast<uint8_t>(rule.threshold_type)});
    cluster_.Member("fallbackToLocalWhenFail", rule.fallback_to_local_when_fail);
  }
  ObjectWriter& own() { return cluster_; }
  // Our countPerWindow is written where it says something, so that a FlowRule of Sentinel's keeps
  // its bytes.
  void Window() {
    cluster_.Member("sampleCount", int64_t{rule_.sample_count});
    cluster_.Member("windowIntervalMs", int64_t{rule_.window_interval_ms});
    if (rule_.count_per_interval) cluster_.Member("countPerWindow", true);
  }
  void Close() {
    cluster_.Member("resourceTimeout", rule_.resource_timeout_ms);
    cluster_.Member("resourceTimeoutStrategy", int64_t{rule_.resource_timeout_strategy});
    cluster_.Member("acquireRefuseStrategy", int64_t{rule_.acquire_refuse_strategy});
    cluster_.Member("clientOfflineTime", rule_.client_offline_time_ms);
    cluster_.Member("maxHoldMs", rule_.max_hold_ms);
    if (rule_.max_per_client_percent == 0) {
      cluster_.Member("maxPerClient", rule_.max_per_client);
    } else {
      cluster_.Member("maxPerClient", MaxPerClientText(rule_));
    }
    cluster_.Member("shadow", rule_.shadow);
    cluster_.Close();
  }

 private:
  const Rule& rule_;
  ObjectWriter cluster_;
};

void WriteFlow(const Rule& rule, std::string* out) {
  ObjectWriter object(out);
  object.Member("resource", rule.resource);
  object.Member("limitApp", rule.limit_app);
  object.Member("grade", int64_t{rule.grade});
  object.Member("count", rule.count);
  object.Member("strategy", int64_t{rule.strategy});
  object.Member("controlBehavior", int64_t{rule.control_behavior});
  object.Member("warmUpPeriodSec", int64_t{rule.warm_up_period_sec});
  object.Member("maxQueueingTimeMs", int64_t{rule.max_queueing_time_ms});
  object.Member("clusterMode", true);
  object.Key("clusterConfig");
  ClusterWriter cluster(rule, out);
  cluster.own().Member("strategy", int64_t{rule.cluster_strategy});
  cluster.Window();
  cluster.Close();
  object.Close();
}

void WriteGoFlow(const Rule& rule, std::string* out) {
  ObjectWriter object(out);
  object.Member("resource", rule.resource);
  object.Member("tokenCalculateStrategy", int64_t{rule.token_calculate_strategy});
  object.Member("controlBehavior", int64_t{rule.control_behavior});
  object.Member("threshold", rule.count);
  object.Member("relationStrategy", int64_t{rule.strategy});
  object.Member("maxQueueingTimeMs", int64_t{rule.max_queueing_time_ms});
  object.Member("warmUpPeriodSec", int64_t{rule.warm_up_period_sec});
  object.Member("warmUpColdFactor", int64_t{rule.warm_up_cold_factor});
  object.Member("statIntervalInMs", int64_t{rule.window_interval_ms});
  object.Member("clusterMode", true);
  object.Key("clusterConfig");
  ClusterWriter cluster(rule, out);
  cluster.own().Member("sampleCount", int64_t{rule.sample_count});
  cluster.Close();
  object.Close();
}

std::string_view JavaClassName(ParamType type) {
  return type == ParamType::kString ? "java.lang.String" : ParamTypeName(type);
}

// hotspot.Rules have four types.
int64_t ValKindOf(ParamType type) {
  enum ValKind : uint8_t { kInt, kString, kBool, kFloat64 };
  switch (type) {
    case ParamType::kString: return kString;
    case ParamType::kBoolean: return kBool;
    case ParamType::kDouble: return kFloat64;
    default: return kInt;
  }
}

// Writes a list of objects, one for each item, with `write`.
template <typename Write>
void WriteItems(const ParamRule& param, std::string* out, Write write) {
  *out += '[';
  for (const ParamRule::Item& item : param.items) {
    if (out->back() != '[') *out += ',';
    ObjectWriter object(out);
    write(item, &object);
    object.Close();
  }
  *out += ']';
}

int64_t SecondsOf(const ParamRule& param) {
  constexpr int64_t kMsPerSecond = 1000;
  return param.duration_ms / kMsPerSecond;
}

void WriteParamFlow(const Rule& rule, std::string* out) {
  ObjectWriter object(out);
  object.Member("resource", rule.resource);
  object.Member("limitApp", rule.limit_app);
  object.Member("grade", int64_t{rule.grade});
  object.Member("paramIdx", int64_t{rule.param->index});
  object.Member("count", rule.count);
  object.Member("controlBehavior", int64_t{rule.control_behavior});
  object.Member("maxQueueingTimeMs", int64_t{rule.max_queueing_time_ms});
  object.Member("burstCount", rule.param->burst_count);
  object.Member("durationInSec", SecondsOf(*rule.param));
  object.Key("paramFlowItemList");
  WriteItems(*rule.param, out, [](const ParamRule::Item& item, ObjectWriter* member) {
    member->Member("object", ParamText(item.value.view()));
    member->Member("count", item.count);
    member->Member("classType", std::string(JavaClassName(item.value.type)));
  });
  object.Member("clusterMode", true);
  object.Key("clusterConfig");
  ClusterWriter cluster(rule, out);
  cluster.Window();
  cluster.own().Member("paramsMaxCapacity", int64_t{rule.param->values_max});
  cluster.Close();
  object.Close();
}

void WriteHotspot(const Rule& rule, std::string* out) {
  ObjectWriter object(out);
  const bool throttles = rule.param->algorithm == ParamRule::Algorithm::kLeakyBucket;
  object.Member("resource", rule.resource);
  object.Member("metricType", int64_t{rule.grade});
  object.Member("controlBehavior", int64_t{throttles ? 1 : 0});
  object.Member("paramIndex", int64_t{rule.param->index});
  object.Member("paramKey", rule.param->key);
  object.Member("threshold", rule.count);
  object.Member("maxQueueingTimeMs", int64_t{rule.max_queueing_time_ms});
  object.Member("burstCount", rule.param->burst_count);
  object.Member("durationInSec", SecondsOf(*rule.param));
  object.Member("paramsMaxCapacity", int64_t{rule.param->values_max});
  object.Key("specificItems");
  WriteItems(*rule.param, out, [](const ParamRule::Item& item, ObjectWriter* member) {
    member->Member("valKind", ValKindOf(item.value.type));
    member->Member("valStr", ParamText(item.value.view()));
    member->Member("threshold", item.count);
  });
  object.Member("clusterMode", true);
  object.Key("clusterConfig");
  ClusterWriter(rule, out).Close();
  object.Close();
}

}  // namespace

std::string MaxPerClientText(const Rule& rule) {
  return rule.max_per_client_percent == 0 ? std::to_string(rule.max_per_client)
                                          : NumberText(rule.max_per_client_percent) + "%";
}

std::string RuleToJson(const Rule& rule) {
  std::string out;
  switch (KindOf(rule)) {
    case RuleKind::kHotParameter: WriteParamFlow(rule, &out); break;
    case RuleKind::kGoHotParameter: WriteHotspot(rule, &out); break;
    case RuleKind::kGoFlow: WriteGoFlow(rule, &out); break;
    default: WriteFlow(rule, &out);
  }
  return out;
}

}  // namespace nowcalls::core
