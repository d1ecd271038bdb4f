// Flows by name: from the resource that a request has to the number of its rule.
//
// Thread: loop. A name is looked up in the namespace of the session. Clients without a session ask
// in the default namespace, administrators in all that they may reach.
#ifndef NOWCALLS_ENGINE_RPC_FLOW_NAME_H_
#define NOWCALLS_ENGINE_RPC_FLOW_NAME_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/tables/flow_names.h"
#include "core/tables/slot.h"
#include "engine/rpc/service.h"
#include "nowcalls/flow_kind.h"

namespace nowcalls::engine::rpc {

// Of a client's request. Without a rule of the name, *flow_id becomes one for which the core
// answers as for a number without a rule. False: several rules have the name, or the principal may
// not reach the namespace; the call was answered so. The repeat of a request with tokens means
// their flow, though the name may have another rule by now. `request_id` 0: none.
bool ResolveName(const Call& call, const core::FlowName& name, uint64_t request_id,
                 int64_t* flow_id);

// `Params` has flow_id and flow_name.
template <typename Params>
bool ResolveFlow(const Call& call, FlowKind kind, Params* params, uint64_t request_id = 0) {
  if (params->flow_name.empty()) return true;
  return ResolveName(call, {params->flow_name, kind}, request_id, &params->flow_id);
}

// Of an administrator's request. Without a kind, all kinds that have the name. Also finds removed
// rules with tokens out. False: none or several numbers have the name; the call was answered so.
bool ResolveChoice(const Call& call, std::string_view name, FlowChoice* choice);

// The first flows of the name that are in sight; more than an error would name. Without `space`: in
// that of the session, or in all.
std::vector<core::FlowSlot> FindInSight(const Call& call, const core::FlowName& name,
                                        core::NamespaceSlot space = core::kNoNamespace);

}  // namespace nowcalls::engine::rpc

#endif  // NOWCALLS_ENGINE_RPC_FLOW_NAME_H_
