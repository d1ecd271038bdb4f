#include "web/sentinel/dashboard_rules.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace nowcalls::web {
namespace {

using nlohmann::ordered_json;

// sentinel-golang's name of a member, and Java's.
using Renaming = std::pair<std::string_view, std::string_view>;
constexpr std::array<Renaming, 4> kRenamed = {{{"threshold", "count"},
                                               {"relationStrategy", "strategy"},
                                               {"metricType", "grade"},
                                               {"paramIndex", "paramIdx"}}};

std::string_view JavaName(std::string_view name) {
  for (const auto& [of_go, of_java] : kRenamed) {
    if (name == of_go) return of_java;
  }
  return name;
}

// hotspot.SpecificValue.ValKind.
std::string JavaClassOf(const ordered_json& val_kind) {
  constexpr std::array<std::string_view, 4> kClasses = {"long", "java.lang.String", "boolean",
                                                        "double"};
  const size_t kind = val_kind.is_number_unsigned() ? val_kind.get<size_t>() : kClasses.size();
  return std::string(kind < kClasses.size() ? kClasses[kind] : kClasses[1]);
}

ordered_json JavaItems(const ordered_json& specific_items) {
  ordered_json items = ordered_json::array();
  for (const ordered_json& item : specific_items) {
    if (!item.is_object()) continue;
    items.push_back({{"object", item.value("valStr", "")},
                     {"count", item.contains("threshold") ? item["threshold"] : ordered_json(0)},
                     {"classType", JavaClassOf(item.value("valKind", ordered_json()))}});
  }
  return items;
}

bool IsOfGo(const ordered_json& rule) { return rule.contains("threshold"); }

ordered_json InJavasForm(const ordered_json& rule) {
  // The dashboard takes a member that it does not find for 0, so Go's names would show empty rules.
  if (!IsOfGo(rule)) return rule;
  ordered_json java = ordered_json::object();
  // Members of both forms keep their names and places.
  for (const auto& [name, value] : rule.items()) {
    if (name == "specificItems") {
      java["paramFlowItemList"] = JavaItems(value);
    } else {
      java[std::string(JavaName(name))] = value;
    }
  }
  // Members that Go leaves out, with what Java's classes have as defaults.
  constexpr int kCallsASecond = 1;
  if (!java.contains("grade")) java["grade"] = kCallsASecond;
  if (!java.contains("limitApp")) java["limitApp"] = "default";
  return java;
}

DashboardRules KindOf(const ordered_json& rule) {
  return rule.contains("paramIdx") || rule.contains("paramIndex") ? DashboardRules::kHotParameter
                                                                  : DashboardRules::kFlow;
}

}  // namespace

ordered_json RulesForDashboard(const ordered_json& rules, DashboardRules kind,
                               const std::string& name_space) {
  ordered_json chosen = ordered_json::array();
  for (const ordered_json& rule : rules) {
    if (!rule.is_object() || KindOf(rule) != kind) continue;
    if (!name_space.empty() && rule.value("namespace", "") != name_space) continue;
    chosen.push_back(InJavasForm(rule));
  }
  return chosen;
}

}  // namespace nowcalls::web
