// StandInRule: a rule of one kind for tokens whose flow id has a rule of the other kind only.
//
// Thread: any. Before format version 4 all tokens of a flow id had one rule, which may have changed
// its kind.
#ifndef NOWCALLS_CORE_RULES_STAND_IN_RULE_H_
#define NOWCALLS_CORE_RULES_STAND_IN_RULE_H_

#include <cstdint>

#include "core/rules/rule.h"

namespace nowcalls::core {

inline constexpr uint32_t kFirstFormatWithKinds = 4;

// Of the kind that `rule` is not, with its owner and hold times; to be removed.
inline Rule StandInRule(const Rule& rule) {
  Rule made;
  made.resource = rule.resource;
  made.flow_id = rule.flow_id;
  made.grade = rule.grade;
  made.count = rule.count;
  made.threshold_type = rule.threshold_type;
  made.resource_timeout_ms = rule.resource_timeout_ms;
  made.client_offline_time_ms = rule.client_offline_time_ms;
  made.max_hold_ms = rule.max_hold_ms;
  if (!rule.param.has_value()) made.param.emplace();
  return made;
}

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULES_STAND_IN_RULE_H_
