// Rules to JSON: what rules_list answers and the ledger keeps.
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/text.h"
#include "core/rules/rule_json.h"

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

void WriteClusterConfig(const Rule& rule, std::string* out) {
  ObjectWriter cluster(out);
  cluster.Member("flowId", rule.flow_id.value);
  cluster.Member("thresholdType", int64_t{static_cast<uint8_t>(rule.threshold_type)});
  cluster.Member("fallbackToLocalWhenFail", rule.fallback_to_local_when_fail);
  cluster.Member("strategy", int64_t{rule.cluster_strategy});
  cluster.Member("sampleCount", int64_t{rule.sample_count});
  cluster.Member("windowIntervalMs", int64_t{rule.window_interval_ms});
  cluster.Member("resourceTimeout", rule.resource_timeout_ms);
  cluster.Member("resourceTimeoutStrategy", int64_t{rule.resource_timeout_strategy});
  cluster.Member("acquireRefuseStrategy", int64_t{rule.acquire_refuse_strategy});
  cluster.Member("clientOfflineTime", rule.client_offline_time_ms);
  if (rule.max_per_client_percent == 0) {
    cluster.Member("maxPerClient", rule.max_per_client);
  } else {
    cluster.Member("maxPerClient", MaxPerClientText(rule));
  }
  cluster.Member("shadow", rule.shadow);
  cluster.Close();
}

}  // namespace

std::string MaxPerClientText(const Rule& rule) {
  return rule.max_per_client_percent == 0 ? std::to_string(rule.max_per_client)
                                          : NumberText(rule.max_per_client_percent) + "%";
}

std::string RuleToJson(const Rule& rule) {
  std::string out;
  ObjectWriter object(&out);
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
  WriteClusterConfig(rule, &out);
  object.Close();
  return out;
}

}  // namespace nowcalls::core
