#include "core/rules/rule_warnings.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/counted.h"
#include "base/param_text.h"
#include "base/text.h"
#include "core/rules/idle_fields.h"
#include "core/rules/rule_amount.h"
#include "core/rules/rule_kind.h"
#include "core/rules/rule_values.h"

namespace nowcalls::core {
namespace {

using nlohmann::json;
using Warnings = std::vector<std::string>;

bool IsGoParameter(const Rule& rule) { return KindOf(rule) == RuleKind::kGoHotParameter; }

// What the kind of rule calls its count.
std::string CountKey(const Rule& rule) {
  const RuleKind kind = KindOf(rule);
  return kind == RuleKind::kGoHotParameter || kind == RuleKind::kGoFlow ? "threshold" : "count";
}

// Whether rounding down takes so much that the author may not know: half a call or more, or a
// tenth of all. 1.67 a second in 60 s is 100.2, which loses nothing that counts.
bool LosesCalls(double calls) {
  constexpr double kCallsMax = 0.5;
  constexpr double kShareMax = 0.1;
  const double lost = calls - static_cast<double>(WholeCalls(calls));
  return lost >= kCallsMax || lost >= kShareMax * calls;
}

// What rounding makes of `count`, the rule's or an item's, each of which `what` names.
std::optional<std::string> Rounding(const Rule& rule, const std::string& what, double count) {
  if (count == 0) return std::nullopt;
  const bool is_rate = rule.says_rate();
  const double calls = is_rate ? rule.CallsInInterval(count) : count;
  const std::string refused = is_rate ? "every request" : "every acquire";
  const std::string in =
      is_rate ? CallsText(calls) + " in " + IntervalText(rule.rate_interval_ms()) : "";
  const bool is_zero = WholeCalls(calls) == 0;
  if (rule.threshold_type == ThresholdType::kAvgLocal) {
    if (!is_zero) return std::nullopt;  // Sessions make a whole number of it.
    constexpr double kClientsMax = 1e9;
    const auto clients = static_cast<int64_t>(std::min(std::ceil(1 / calls), kClientsMax));
    return what + " for each client is " + (is_rate ? in + ", " : "") +
           "rounded down: " + (is_rate ? refused + " is refused" : "the level is 0") +
           " while fewer than " + std::to_string(clients) + " clients are online";
  }
  if (!LosesCalls(calls)) return std::nullopt;
  const std::string rounded = " is " + (is_rate ? in + ", " : "") + "rounded down";
  if (!is_zero) return what + rounded + " to " + std::to_string(WholeCalls(calls));
  return what + rounded + ": " + (is_rate ? "0 pass, and " : "the level is 0, and ") + refused +
         " is refused";
}

// Of the values with limits of their own: the first one, and how many more.
std::optional<std::string> ItemRounding(const Rule& rule) {
  std::optional<std::string> first;
  size_t others = 0;
  for (const ParamRule::Item& item : rule.param->items) {
    const Param value = item.value.view();
    const std::string what = CountKey(rule) + " " + CallsText(item.count) + " of " +
                             std::string(ParamTypeName(value.type)) + " " +
                             Quoted(ParamText(value));
    std::optional<std::string> warning = Rounding(rule, what, item.count);
    if (!warning.has_value()) continue;
    if (first.has_value()) {
      ++others;
    } else {
      first = std::move(warning);
    }
  }
  if (others > 0) *first += "; so it is with " + Counted(others, "more value");
  return first;
}

bool LooksTyped(std::string_view text) {
  return ParamFromText(ParamType::kDouble, text).has_value() ||
         ParamFromText(ParamType::kBoolean, text).has_value();
}

// The keys of a map are strings, whatever they look like.
std::optional<std::string> StringItem(const json& object) {
  const auto items = object.find("specificItems");
  if (items == object.end() || !items->is_object()) return std::nullopt;
  for (const auto& [text, threshold] : items->items()) {
    if (!LooksTyped(text)) continue;
    return "specificItems as a map holds strings, and " + Quoted(text) +
           " is one; for a number or a boolean write [{\"valKind\": 0, \"valStr\": \"5\", "
           "\"threshold\": 10}]";
  }
  return std::nullopt;
}

// sentinel-golang reads its thresholds as integers of 64 bits.
std::optional<std::string> Fraction(const Rule& rule) {
  const auto is_fraction = [](double count) { return std::floor(count) != count; };
  const auto& items = rule.param->items;
  const auto item = std::find_if(items.begin(), items.end(),
                                 [&](const ParamRule::Item& i) { return is_fraction(i.count); });
  if (!is_fraction(rule.count) && item == items.end()) return std::nullopt;
  return "threshold " + CallsText(is_fraction(rule.count) ? rule.count : item->count) +
         " is no whole number, and sentinel-golang refuses a hotspot.Rule with one";
}

// What Sentinel or sentinel-golang would not take for a rule: they log it and go on without.
void AddInvalidElsewhere(const json& object, const Rule& rule, Warnings* warnings) {
  const ParamRule& param = *rule.param;
  if (IsGoParameter(rule)) {
    if (auto fraction = Fraction(rule)) warnings->push_back(*std::move(fraction));
    if (param.index <= 0 || param.key.empty()) return;
    warnings->push_back("paramIndex " + std::to_string(param.index) + " and paramKey " +
                        Quoted(param.key) +
                        " exclude each other: sentinel-golang ignores a rule with both");
    return;
  }
  const auto index = object.find("paramIdx");
  if (index == object.end() || !IsUnset(*index)) return;
  warnings->push_back(
      "paramIdx is not set: 0 is taken, the first argument; Sentinel ignores such a rule");
}

}  // namespace

Warnings RuleWarnings(const json& object, const Rule& rule) {
  Warnings warnings;
  const auto add = [&](std::optional<std::string> warning) {
    if (warning.has_value()) warnings.push_back(*std::move(warning));
  };
  add(Rounding(rule, CountKey(rule) + " " + CallsText(rule.count), rule.count));
  if (rule.param.has_value()) add(ItemRounding(rule));
  for (std::string& idle : IdleFields(object, rule)) warnings.push_back(std::move(idle));
  if (!rule.param.has_value()) return warnings;
  AddInvalidElsewhere(object, rule, &warnings);
  add(StringItem(object));
  return warnings;
}

RuleRemarks GuardWarnings(const std::vector<Rule>& rules, uint32_t guard) {
  constexpr double kMsPerSecond = 1000;
  RuleRemarks remarks{"more rules exceed the guard"};
  for (const Rule& rule : rules) {
    if (guard == 0 || !rule.says_rate()) continue;
    const double a_second = rule.CallsInInterval(rule.count) * kMsPerSecond /
                            static_cast<double>(rule.rate_interval_ms());
    if (a_second <= guard) continue;
    remarks.Add("rule of resource " + Quoted(rule.resource) + ", flowId " +
                std::to_string(rule.flow_id.value) + ": " + AmountText(rule, rule.count) +
                " is more than the " + std::to_string(guard) +
                " requests a second that the namespace may send (namespace-qps-max); beyond them "
                "the answer is TOO_MANY_REQUEST, for which Sentinel's clients let calls pass");
  }
  return remarks;
}

}  // namespace nowcalls::core
