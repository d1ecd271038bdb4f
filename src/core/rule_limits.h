// Checks of sets of rules against rules in force and limits.
//
// Thread: loop.
#ifndef NOWCALLS_CORE_RULE_LIMITS_H_
#define NOWCALLS_CORE_RULE_LIMITS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "base/limits.h"
#include "core/rules/rule_set.h"
#include "core/sight.h"
#include "core/tables/flow_table.h"
#include "nowcalls/status.h"

namespace nowcalls::core {

std::string InNamespace(std::string_view name_space);  // "namespace shop: ".

absl::flat_hash_set<FlowKey> FlowKeysOf(const RuleSetRefs& sets);

// kInvalidArgument: a namespace has two sets, or a flow is in two. kAlreadyExists: a namespace
// without a set keeps the flow.
Status CheckFlowOwners(const FlowTable& flows, const RuleSetRefs& sets);

// An error of CheckFlowOwners, perhaps within other text, without a namespace out of sight. Other
// texts stay.
std::string WithoutOthers(const std::string& text, const Sight& sight);

// kResourceExhausted: namespaces_max, rules_max, flows_max. `wanted`: FlowKeysOf(sets).
Status CheckRuleLimits(const FlowTable& flows, const Limits& limits, const RuleSetRefs& sets,
                       const absl::flat_hash_set<FlowKey>& wanted);

// JSON bytes of new and changed rules of sets by RPC.
uint64_t BytesToWrite(const FlowTable& flows, const RuleSetRefs& sets);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULE_LIMITS_H_
