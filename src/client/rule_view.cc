#include "client/rule_view.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "nowcalls/flow_name.h"
#include "wire/json.h"

namespace nowcalls::client {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
T Field(const Json& object, const char* name, T otherwise) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return otherwise;
  if constexpr (std::is_same_v<T, bool>) {
    return found->is_boolean() ? found->template get<bool>() : otherwise;
  } else {
    if (!found->is_number()) return otherwise;
    if constexpr (std::is_integral_v<T>) {
      // Neither the conversion nor sums of a wild number are defined.
      constexpr double kWild = 1e15;
      if (found->is_number_float() && !(std::abs(found->template get<double>()) < kWild)) {
        return otherwise;
      }
      if (found->is_number_unsigned() && found->template get<uint64_t>() > INT64_MAX) {
        return otherwise;
      }
    }
    return found->template get<T>();
  }
}

// count, or sentinel-golang's name for it.
double Count(const Json& object) {
  return Field<double>(object, "count", Field<double>(object, "threshold", 0));
}

std::string Text(const Json& item, const char* name) {
  const auto found = item.find(name);
  return found != item.end() && found->is_string() ? found->get<std::string>() : std::string();
}

void ReadItems(const Json& rule, const char* list, const char* text, RuleView* view) {
  const auto items = rule.find(list);
  if (items == rule.end() || !items->is_array()) return;
  for (const Json& item : *items) {
    if (item.is_object()) view->items[Text(item, text)] = Count(item);
  }
}

// Sentinel's kinds have their window in clusterConfig, sentinel-golang's beside it.
void ReadWindow(const Json& rule, const Json& config, RuleView* view) {
  constexpr int64_t kMsPerSecond = 1000;
  constexpr int64_t kSecondsMax = kRuleTimeMsMax / kMsPerSecond;
  const auto window_ms = Field<int64_t>(config, "windowIntervalMs", kMsPerSecond);
  view->window_ms = std::clamp<int64_t>(window_ms, 1, kRuleTimeMsMax);
  view->count_per_window = Field(config, "countPerWindow", false);
  if (!rule.contains("threshold")) return;
  view->count_per_window = true;
  const auto seconds =
      std::clamp<int64_t>(Field<int64_t>(rule, "durationInSec", 1), 1, kSecondsMax);
  const auto interval_ms = Field<int64_t>(rule, "statIntervalInMs", kMsPerSecond * seconds);
  view->window_ms = std::clamp<int64_t>(interval_ms, 1, kRuleTimeMsMax);
}

// Servers that know no kinds do not say it, but a key of the rule does.
bool IsByValue(const Json& rule) {
  if (rule.contains("kind")) return Text(rule, "kind") == FlowKindName(FlowKind::kValue);
  return rule.contains("paramIdx") || rule.contains("paramIndex");
}

RuleView ReadRule(const Json& rule, const Json& config) {
  RuleView view;
  const auto refuse = Field<int64_t>(config, "acquireRefuseStrategy", 0);
  if (refuse >= 0 && refuse <= 3) view.acquire_refuse = static_cast<RuleView::Refused>(refuse);
  view.fallback_to_local = Field(config, "fallbackToLocalWhenFail", false);
  view.global = Field<int64_t>(config, "thresholdType", 0) == 1;
  view.count = Count(rule);
  ReadWindow(rule, config, &view);
  ReadItems(rule, "paramFlowItemList", "object", &view);
  ReadItems(rule, "specificItems", "valStr", &view);
  return view;
}

}  // namespace

std::string ValueText(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
  if (const auto* real = std::get_if<double>(&value)) return NumberText(*real);
  return {};
}

double RuleView::CountOf(const Value& param) const {
  if (items.empty() || param.index() == 0) return count;
  const auto item = items.find(ValueText(param));
  return item == items.end() ? count : item->second;
}

uint64_t RuleView::Part(double calls, uint64_t sessions) const {
  if (!(calls > 0)) return 0;
  // GLOBAL: the level is divided by the sessions, but leaves each at least one call.
  if (global) calls = std::max(1.0, calls / static_cast<double>(std::max<uint64_t>(1, sessions)));
  constexpr double kCallsMax = 1e18;
  return static_cast<uint64_t>(std::min(calls, kCallsMax));
}

uint64_t RuleView::WindowShare(const Value& param, uint64_t sessions) const {
  constexpr double kMsPerSecond = 1000;
  const double calls = CountOf(param);
  return Part(count_per_window ? calls : calls * static_cast<double>(window_ms) / kMsPerSecond,
              sessions);
}

Result<FlowRules> ReadFlowRules(std::string_view result, int64_t flow_id) {
  Result<Json> page = wire::JsonFromMessagePack(result);
  if (!page.ok()) return Status::Corruption(page.status().message());
  if (!page->is_array() || page->empty() || !page->front().is_array()) {
    return Status::Corruption("rules_list: the answer is not a page of rules");
  }
  // The page may begin behind the flow id: rules of other flow ids are skipped.
  FlowRules rules;
  const std::string_view name = NameOfFlow(FlowId(flow_id));
  for (const Json& rule : page->front()) {
    if (!rule.is_object()) continue;
    const auto config = rule.find("clusterConfig");
    if (config == rule.end() || !config->is_object()) continue;
    const bool is_it = name.empty() ? Field<int64_t>(*config, "flowId", 0) == flow_id
                                    : Text(rule, "resource") == name;
    if (!is_it) continue;
    (IsByValue(rule) ? rules.by_value : rules.of_flow) = ReadRule(rule, *config);
  }
  return rules;
}

void RuleViews::Learn(int64_t flow_id, FlowRules rules, int64_t now_ms) {
  const auto known = seen_.find(flow_id);
  if (known != seen_.end()) {
    order_.erase(known->second.place);
    seen_.erase(known);
  } else if (seen_.size() >= kFlowsMax) {
    seen_.erase(order_.front());
    order_.pop_front();
  }
  order_.push_back(flow_id);
  seen_[flow_id] = {std::move(rules), now_ms, std::prev(order_.end())};
}

bool RuleViews::IsStale(int64_t flow_id, int64_t now_ms) const {
  const auto known = seen_.find(flow_id);
  return known == seen_.end() || now_ms - known->second.at_ms > kFreshMs;
}

const RuleView* RuleViews::Find(int64_t flow_id, FlowKind kind) const {
  const auto known = seen_.find(flow_id);
  if (known == seen_.end()) return nullptr;
  const FlowRules& rules = known->second.rules;
  const auto& rule = kind == FlowKind::kValue ? rules.by_value : rules.of_flow;
  return rule ? &*rule : nullptr;
}

}  // namespace nowcalls::client
