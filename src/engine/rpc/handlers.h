// The handlers of MessagePack-RPC's methods (methods.cc is their table): one request in, one call
// of the core, one reply out.
//
// Thread: loop. Stateless.
#ifndef NOWCALLS_ENGINE_RPC_HANDLERS_H_
#define NOWCALLS_ENGINE_RPC_HANDLERS_H_

#include <cstdint>
#include <optional>

#include "core/core.h"
#include "engine/outputs.h"
#include "engine/rpc/service.h"
#include "nowcalls/param.h"

namespace nowcalls::engine::rpc {

// Clients: identify.cc, tokens.cc.
void Identify(const Call& call);
void Hello(const Call& call);
void Ping(const Call& call);
void Acquire(const Call& call);
void AcquireAll(const Call& call);
void Request(const Call& call);
void RequestParam(const Call& call);
void Release(const Call& call);
void Keep(const Call& call);
void Cancel(const Call& call);
// Answers an acquire, now or later. `value`: of the parameter, if its limit refuses.
void ReplyAcquire(Outputs* outputs, Connection* connection, uint32_t msgid,
                  const core::AcquireAnswer& answer,
                  const std::optional<Param>& value = std::nullopt);

void ReplyAcquireAll(Outputs* outputs, Connection* connection, uint32_t msgid,
                     const core::AcquireAllAnswer& answer);

// Administrators: administration.cc.
void Reclaim(const Call& call);
void ReclaimClient(const Call& call);
void ReclaimFlow(const Call& call);
void Purge(const Call& call);
void Drain(const Call& call);
void ReclaimNamespace(const Call& call);
void DrainNamespace(const Call& call);
void RulesLoad(const Call& call);
void Backup(const Call& call);
void Copy(const Call& call);
void CopyPiece(const Call& call);
void Handover(const Call& call);

// Listings: listings.cc, namespaces.cc.
void RulesList(const Call& call);
void Flow(const Call& call);
void Flows(const Call& call);
void Params(const Call& call);
void Waiters(const Call& call);
void Tokens(const Call& call);
void Sessions(const Call& call);
void History(const Call& call);
void Namespaces(const Call& call);
void Cluster(const Call& call);
void Info(const Call& call);

}  // namespace nowcalls::engine::rpc

#endif  // NOWCALLS_ENGINE_RPC_HANDLERS_H_
