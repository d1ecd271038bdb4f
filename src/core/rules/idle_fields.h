// Fields of Sentinel's kinds of rules that are without effect here.
//
// Thread: any; pure. They are read past or kept and shown, and a limit that its author believes in
// may hang on them: controlBehavior, limitApp, refResource and their like.
#ifndef NOWCALLS_CORE_RULES_IDLE_FIELDS_H_
#define NOWCALLS_CORE_RULES_IDLE_FIELDS_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/rules/rule.h"

namespace nowcalls::core {

// A sentence for each reason: "controlBehavior 1, burstCount 5 have no effect here: WHY". Names the
// fields of `object` that say more than their default. `rule` is what `object` was read as.
std::vector<std::string> IdleFields(const nlohmann::json& object, const Rule& rule);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULES_IDLE_FIELDS_H_
