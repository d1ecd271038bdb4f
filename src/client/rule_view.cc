#include "client/rule_view.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
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
    return found->is_number() ? found->template get<T>() : otherwise;
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
  view->window_ms = Field<int64_t>(config, "windowIntervalMs", kMsPerSecond);
  view->count_per_window = Field(config, "countPerWindow", false);
  if (!rule.contains("threshold")) return;
  view->count_per_window = true;
  view->window_ms = Field<int64_t>(rule, "statIntervalInMs",
                                   kMsPerSecond * Field<int64_t>(rule, "durationInSec", 1));
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
  const auto timeout = Field<int64_t>(config, "resourceTimeoutStrategy", 0);
  if (timeout >= 0 && timeout <= 2)
    view.resource_timeout = static_cast<RuleView::TimedOut>(timeout);
  view.fallback_to_local = Field(config, "fallbackToLocalWhenFail", false);
  view.resource_timeout_ms = Field<int64_t>(config, "resourceTimeout", 2000);
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

int64_t EndByRule(const RuleView* rule, KeepMode keep, int64_t granted_ms) {
  constexpr int64_t kMarginMsMax = 50;
  const bool releases = keep == KeepMode::kByRule && rule != nullptr &&
                        rule->resource_timeout == RuleView::TimedOut::kRelease;
  if (!releases) return INT64_MAX;
  const int64_t timeout_ms = rule->resource_timeout_ms;
  return granted_ms + timeout_ms - std::min(kMarginMsMax, timeout_ms / 10);
}

Result<FlowRules> ReadFlowRules(std::string_view result, int64_t flow_id) {
  Result<Json> page = wire::JsonFromMessagePack(result);
  if (!page.ok()) return Status::Corruption(page.status().message());
  if (!page->is_array() || page->empty() || !page->front().is_array()) {
    return Status::Corruption("rules_list: the answer is not a page of rules");
  }
  FlowRules rules;
  for (const Json& rule : page->front()) {
    if (!rule.is_object()) continue;
    const auto config = rule.find("clusterConfig");
    if (config == rule.end() || !config->is_object()) continue;
    if (Field<int64_t>(*config, "flowId", 0) != flow_id) continue;
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
