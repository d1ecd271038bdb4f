// Checks of sets of rules against the rules in force and the limits, before anything changes.
//
// Thread: loop. Pure functions of the flow table.
#ifndef NOWCALLS_CORE_RULE_LIMITS_H_
#define NOWCALLS_CORE_RULE_LIMITS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "base/limits.h"
#include "core/flow_table.h"
#include "core/rules/rule_set.h"
#include "nowcalls/status.h"

namespace nowcalls::core {

// "namespace shop: ", the beginning of messages.
std::string InNamespace(std::string_view name_space);

// The flows of all sets.
absl::flat_hash_set<FlowKey> FlowKeysOf(const RuleSetRefs& sets);

// No namespace may have two sets, and no flow may be in two sets, nor in the set of a namespace
// while another one keeps it. The two kinds of a flow id are two flows. kInvalidArgument,
// kAlreadyExists.
Status CheckFlowOwners(const FlowTable& flows, const RuleSetRefs& sets);

// namespaces_max, rules_max and flows_max. `wanted`: FlowKeysOf(sets). kResourceExhausted.
Status CheckRuleLimits(const FlowTable& flows, const Limits& limits, const RuleSetRefs& sets,
                       const absl::flat_hash_set<FlowKey>& wanted);

// How many bytes of JSON the sets that come over the network would write: rules that are new or
// change.
uint64_t BytesToWrite(const FlowTable& flows, const RuleSetRefs& sets);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULE_LIMITS_H_
