#include "core/rules/idle_fields.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/rules/json_fields.h"
#include "core/rules/rule_kind.h"
#include "core/rules/rule_values.h"

namespace nowcalls::core {
namespace {

using nlohmann::json;

// The rules under which a field is without effect.
using When = bool (*)(const Rule& rule);

bool Always(const Rule& /*rule*/) { return true; }
bool NothingWaits(const Rule& rule) { return rule.acquire_refuse_strategy != 3; }
bool InProgress(const Rule& rule) { return !rule.says_rate(); }
bool IsThrottling(const Rule& rule) {
  return rule.param->algorithm == ParamRule::Algorithm::kLeakyBucket;
}
bool HasNoDuration(const Rule& rule) {
  constexpr int64_t kLeastMs = 1000;
  return InProgress(rule) && rule.param->duration_ms > kLeastMs;
}
bool HasNoBurst(const Rule& rule) { return InProgress(rule) || IsThrottling(rule); }
bool HasNoQueue(const Rule& rule) {
  return NothingWaits(rule) && (InProgress(rule) || !IsThrottling(rule));
}

constexpr char kAtOnce[] = "calls beyond the count are refused at once";
constexpr char kAllApps[] = "the rule limits all applications together";
constexpr char kByNumber[] = "only calls with the rule's flowId count";
constexpr char kCountAlone[] = "as in Sentinel's token server, which looks at the count alone";
constexpr char kQueues[] = "only where acquireRefuseStrategy is 3 the server queues";
constexpr char kNoBorrowing[] = "a flow borrows from itself only";
constexpr char kLevel[] = "metricType 0 limits calls in progress";
constexpr char kReject[] = "only a token bucket has a burst (metricType 1, controlBehavior 0)";

struct IdleField {  // NOLINT(clang-analyzer-optin.performance.Padding): in the order of a row.
  RuleKind kind;
  std::string_view key;
  std::string_view neutral;  // The value that says nothing, beside null and "".
  const char* why;
  When when = Always;
  bool in_cluster = false;
};

// Such a field is no mistake, since Sentinel's files must load as they are. But its author may rely
// on a limit that is not there, so checks, loads and the log name it, and --strict refuses it.
// Rows of one kind and reason stand together: IdleFields makes one sentence of each run.
constexpr IdleField kIdleFields[] = {
    {RuleKind::kFlow, "limitApp", "default", kAllApps},
    {RuleKind::kFlow, "strategy", "0", kByNumber},
    {RuleKind::kFlow, "refResource", "", kByNumber},
    {RuleKind::kFlow, "controlBehavior", "0", kAtOnce},
    {RuleKind::kFlow, "warmUpPeriodSec", "10", kAtOnce},
    {RuleKind::kFlow, "maxQueueingTimeMs", "500", kQueues, NothingWaits},
    {RuleKind::kFlow, "strategy", "0", kNoBorrowing, Always, /*in_cluster=*/true},

    {RuleKind::kHotParameter, "limitApp", "default", kAllApps},
    {RuleKind::kHotParameter, "controlBehavior", "0", kCountAlone},
    {RuleKind::kHotParameter, "burstCount", "0", kCountAlone},
    {RuleKind::kHotParameter, "durationInSec", "1", kCountAlone},
    {RuleKind::kHotParameter, "maxQueueingTimeMs", "0", kQueues, NothingWaits},

    {RuleKind::kGoHotParameter, "burstCount", "0", kReject, HasNoBurst},
    {RuleKind::kGoHotParameter, "controlBehavior", "0", kLevel, InProgress},
    {RuleKind::kGoHotParameter, "durationInSec", "0", kLevel, HasNoDuration},
    {RuleKind::kGoHotParameter, "maxQueueingTimeMs", "0", kQueues, HasNoQueue},

    {RuleKind::kGoFlow, "tokenCalculateStrategy", "0", kAtOnce},
    {RuleKind::kGoFlow, "controlBehavior", "0", kAtOnce},
    {RuleKind::kGoFlow, "warmUpPeriodSec", "0", kAtOnce},
    {RuleKind::kGoFlow, "warmUpColdFactor", "0", kAtOnce},
    {RuleKind::kGoFlow, "adaptiveConfigName", "", kAtOnce},
    {RuleKind::kGoFlow, "lowMemUsageThreshold", "0", kAtOnce},
    {RuleKind::kGoFlow, "highMemUsageThreshold", "0", kAtOnce},
    {RuleKind::kGoFlow, "memLowWaterMarkBytes", "0", kAtOnce},
    {RuleKind::kGoFlow, "memHighWaterMarkBytes", "0", kAtOnce},
    {RuleKind::kGoFlow, "relationStrategy", "0", kByNumber},
    {RuleKind::kGoFlow, "refResource", "", kByNumber},
    {RuleKind::kGoFlow, "maxQueueingTimeMs", "0", kQueues, NothingWaits},
};

// "controlBehavior 1"; empty: the object does not have the field, or it says nothing.
std::string Said(const json& object, const IdleField& field) {
  // The object that holds the field.
  const json* place = &object;
  if (field.in_cluster) {
    const auto cluster = object.find("clusterConfig");
    if (cluster == object.end() || !cluster->is_object()) return {};
    place = &*cluster;
  }
  const auto value = place->find(field.key);
  if (value == place->end() || IsUnset(*value)) return {};
  // A number may come as a string: fastjson reads both.
  if (value->is_string() && value->get_ref<const std::string&>() == field.neutral) return {};
  const auto number = IntegerOf(*value);
  if (number.has_value() && std::to_string(*number) == field.neutral) return {};
  const std::string path = field.in_cluster ? "clusterConfig." : "";
  return path + std::string(field.key) + " " + ExcerptOf(*value);
}

}  // namespace

std::vector<std::string> IdleFields(const json& object, const Rule& rule) {
  // One pass over the table: a row with another reason ends the sentence.
  const RuleKind kind = KindOf(rule);
  std::vector<std::string> sentences;
  std::string said;
  size_t count = 0;
  std::string_view why;
  const auto finish = [&] {
    if (count == 0) return;
    sentences.push_back(said + (count == 1 ? " has" : " have") +
                        " no effect here: " + std::string(why));
    count = 0;
  };
  for (const IdleField& field : kIdleFields) {
    if (field.kind != kind || !field.when(rule)) continue;
    const std::string text = Said(object, field);
    if (text.empty()) continue;
    if (field.why != why) finish();
    said = count == 0 ? text : said + ", " + text;
    why = field.why;
    ++count;
  }
  finish();
  return sentences;
}

}  // namespace nowcalls::core
