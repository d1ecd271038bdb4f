// The text of a rule file: comments, bounds, JSON, and keys that an object has twice.
//
// Thread: any. Time and memory are linear in the text.
#ifndef NOWCALLS_CORE_RULES_RULE_TEXT_H_
#define NOWCALLS_CORE_RULES_RULE_TEXT_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "nowcalls/status.h"

namespace nowcalls::core {

// The last value counts.
struct RepeatedKey {
  size_t position = 0;  // The element of the outermost array, from 1; 0: there is no array.
  std::string path;     // Inside of that element, as "count" or "clusterConfig.flowId"; the
                        // beginning of a long one.
};

// `repeated`: in the order of the text. kInvalidArgument names the line of what is no JSON, or the
// bound that the text exceeds: nesting, values, or repeated keys.
Status ReadRuleText(std::string_view text, nlohmann::json* document,
                    std::vector<RepeatedKey>* repeated);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULES_RULE_TEXT_H_
