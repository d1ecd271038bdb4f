// The fields of Sentinel's ParamFlowRule and sentinel-golang's hotspot.Rule.
//
// Thread: any. `error` gets the first mistake. Not read: `resource`, `clusterConfig`. Items that
// Sentinel logs and leaves out are mistakes here, as is a repeated value.
#ifndef NOWCALLS_CORE_RULES_PARAM_FIELDS_H_
#define NOWCALLS_CORE_RULES_PARAM_FIELDS_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/rules/rule.h"

namespace nowcalls::core {

void ReadParamFlow(const nlohmann::json& object, Rule* rule, std::string* error);

// specificItems is a list of {valKind, valStr, threshold}, as sentinel-golang's data sources have
// it, or a map from strings to thresholds.
void ReadHotspot(const nlohmann::json& object, Rule* rule, std::string* error);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULES_PARAM_FIELDS_H_
