// Rules as Sentinel's dashboard reads them.
//
// Thread: any; pure. Forms: Sentinel's Java classes FlowRule and ParamFlowRule; rules in
// sentinel-golang's form are converted.
#ifndef NOWCALLS_WEB_SENTINEL_DASHBOARD_RULES_H_
#define NOWCALLS_WEB_SENTINEL_DASHBOARD_RULES_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace nowcalls::web {

enum class DashboardRules { kFlow, kHotParameter };

// Of `rules`, rows as rules_list has them, those of kind and namespace (empty: all). Each has its
// `namespace`, which the dashboard ignores.
nlohmann::ordered_json RulesForDashboard(const nlohmann::ordered_json& rules, DashboardRules kind,
                                         const std::string& name_space);

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_SENTINEL_DASHBOARD_RULES_H_
