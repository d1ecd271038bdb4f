// Rules in the forms in which Sentinel's dashboard reads them.
//
// Thread: any; pure. The dashboard knows Sentinel's Java classes FlowRule and ParamFlowRule. Rules
// that were loaded in the form of sentinel-golang are shown in Java's, since the dashboard would
// take what it does not find for 0.
#ifndef NOWCALLS_WEB_SENTINEL_DASHBOARD_RULES_H_
#define NOWCALLS_WEB_SENTINEL_DASHBOARD_RULES_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace nowcalls::web {

enum class DashboardRules { kFlow, kHotParameter };

// Those of `rules`, an array of rows as rules_list has them, that are of the kind and of the
// namespace; an empty namespace: of all. Each keeps its member `namespace`, which the dashboard
// passes over.
nlohmann::ordered_json RulesForDashboard(const nlohmann::ordered_json& rules, DashboardRules kind,
                                         const std::string& name_space);

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_SENTINEL_DASHBOARD_RULES_H_
