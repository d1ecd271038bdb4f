#include "core/rules/rule_fields.h"

#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "core/rules/rule_values.h"

namespace nowcalls::core {
namespace {

using nlohmann::json;

constexpr int64_t kInt32Max = INT32_MAX;

// Reads fields of one JSON object. Remembers the first field that is wrong and reads on with
// defaults, so that a parser is a plain list of fields.
class FieldReader {
 public:
  FieldReader(const json& object, std::string prefix, std::string* error)
      : object_(object), prefix_(std::move(prefix)), error_(error) {}

  // nullptr for a key that is absent or null: Sentinel's dashboard writes null for what is unset.
  const json* Find(const char* key) const {
    const auto it = object_.find(key);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }

  // The same of a number or a boolean.
  const json* FindSet(const char* key) const {
    const json* value = Find(key);
    return value == nullptr || IsUnset(*value) ? nullptr : value;
  }

  void Fail(const char* key, std::string_view why) {
    if (error_->empty()) *error_ = prefix_ + key + " " + std::string(why);
  }

  void String(const char* key, size_t bytes_max, std::string* out) {
    const json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_string()) return Fail(key, "must be a string, got " + ExcerptOf(*value));
    if (value->get_ref<const std::string&>().size() > bytes_max) {
      return Fail(key, "must be at most " + std::to_string(bytes_max) + " bytes long");
    }
    *out = value->get<std::string>();
  }

  void Bool(const char* key, bool* out) {
    const json* value = FindSet(key);
    if (value == nullptr) return;
    const auto v = BooleanOf(*value);
    if (!v.has_value()) return Fail(key, "must be true or false, got " + ExcerptOf(*value));
    *out = *v;
  }

  void Number(const char* key, double* out) {
    const json* value = FindSet(key);
    if (value == nullptr) return;
    const auto v = NumberOf(*value);
    if (!v.has_value()) return Fail(key, "must be a number, got " + ExcerptOf(*value));
    *out = *v;
  }

  template <typename T>
  void Integer(const char* key, int64_t min, int64_t max, T* out) {
    const json* value = FindSet(key);
    if (value == nullptr) return;
    const auto v = IntegerOf(*value);
    if (!v.has_value() || *v < min || *v > max) {
      return Fail(key, "must be an integer from " + std::to_string(min) + " to " +
                           std::to_string(max) + ", got " + ExcerptOf(*value));
    }
    *out = static_cast<T>(*v);
  }

 private:
  const json& object_;
  std::string prefix_;
  std::string* error_;
};

// A count, 0 for no cap, or a share of the level: "25%". A string without "%" is refused, since
// "25" may mean either.
void ReadMaxPerClient(FieldReader* fields, Rule* rule) {
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

void ReadClusterConfig(const json& object, Rule* rule, std::string* error) {
  FieldReader fields(object, "clusterConfig.", error);
  int32_t threshold_type = 0;
  if (fields.FindSet("flowId") == nullptr) fields.Fail("flowId", "is missing; it must be > 0");
  fields.Integer("flowId", 1, INT64_MAX, &rule->flow_id.value);
  fields.Integer("thresholdType", 0, 1, &threshold_type);
  fields.Bool("fallbackToLocalWhenFail", &rule->fallback_to_local_when_fail);
  fields.Integer("strategy", 0, kInt32Max, &rule->cluster_strategy);
  fields.Integer("sampleCount", 1, kInt32Max, &rule->sample_count);
  fields.Integer("windowIntervalMs", 1, kInt32Max, &rule->window_interval_ms);
  fields.Integer("resourceTimeout", 1, kRuleTimeMsMax, &rule->resource_timeout_ms);
  fields.Integer("resourceTimeoutStrategy", 0, 2, &rule->resource_timeout_strategy);
  fields.Integer("acquireRefuseStrategy", 0, 3, &rule->acquire_refuse_strategy);
  fields.Integer("clientOfflineTime", 1, kRuleTimeMsMax, &rule->client_offline_time_ms);
  ReadMaxPerClient(&fields, rule);
  fields.Bool("shadow", &rule->shadow);
  rule->threshold_type = static_cast<ThresholdType>(threshold_type);
  if (rule->window_interval_ms % rule->sample_count != 0) {
    fields.Fail("windowIntervalMs", "must be divisible by sampleCount");
  }
}

bool IsBlank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

std::string ReadRuleFields(const json& object, Rule* rule) {
  std::string error;
  FieldReader fields(object, "", &error);
  if (fields.Find("resource") == nullptr) fields.Fail("resource", "is missing");
  fields.String("resource", kResourceBytesMax, &rule->resource);
  if (IsBlank(rule->resource)) fields.Fail("resource", "must not be blank");
  if (!IsPrintable(rule->resource)) fields.Fail("resource", "must not hold control characters");
  fields.String("limitApp", kResourceBytesMax, &rule->limit_app);
  fields.Integer("grade", 0, 1, &rule->grade);
  if (fields.FindSet("count") == nullptr) fields.Fail("count", "is missing; it must be >= 0");
  fields.Number("count", &rule->count);
  if (!(rule->count >= 0)) fields.Fail("count", "must be >= 0");
  fields.Integer("strategy", 0, 2, &rule->strategy);
  fields.Integer("controlBehavior", 0, 3, &rule->control_behavior);
  fields.Integer("warmUpPeriodSec", 0, kInt32Max, &rule->warm_up_period_sec);
  fields.Integer("maxQueueingTimeMs", 0, kInt32Max, &rule->max_queueing_time_ms);
  const json* cluster = fields.Find("clusterConfig");
  if (cluster == nullptr) {
    fields.Fail("clusterConfig", "is missing; clusterMode is true");
  } else if (!cluster->is_object()) {
    fields.Fail("clusterConfig", "must be an object");
  } else {
    ReadClusterConfig(*cluster, rule, &error);
  }
  return error;
}

std::string ExcerptOf(const json& value) {
  constexpr size_t kExcerptBytes = 60;
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  if (text.size() > kExcerptBytes) text = text.substr(0, kExcerptBytes) + "...";
  return text;
}

}  // namespace nowcalls::core
