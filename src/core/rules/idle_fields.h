// Fields of Sentinel's kinds of rules that are without effect here.
//
// Thread: any.
#ifndef NOWCALLS_CORE_RULES_IDLE_FIELDS_H_
#define NOWCALLS_CORE_RULES_IDLE_FIELDS_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/rules/rule.h"

namespace nowcalls::core {

// A sentence a reason: "controlBehavior 1, burstCount 5 have no effect here: WHY". Leaves out
// fields with their default. `rule`: parsed from `object`.
std::vector<std::string> IdleFields(const nlohmann::json& object, const Rule& rule);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULES_IDLE_FIELDS_H_
