// The methods of the protocol (PROTOCOL.md). Their handlers: engine/rpc/methods.cc.
//
// Thread: any.
#ifndef NOWCALLS_WIRE_METHOD_H_
#define NOWCALLS_WIRE_METHOD_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace nowcalls::wire {

enum class Method : uint8_t {
  kUnknown,
  kHello,
  kPing,
  kAcquire,
  kRelease,
  kKeep,
  kRulesList,
  kRulesLoad,
  kFlow,
  kFlows,
  kTokens,
  kSessions,
  kInfo,
  kReclaim,
  kCancel,
  kHistory,
  kReclaimClient,
  kReclaimFlow,
  kPurge,
  kDrain,
  kNamespaces,
  kBackup,
  kRequest,
  kRequestParam,
  kParams,
  kWaiters,
  kAcquireAll,
  kReclaimNamespace,
  kDrainNamespace,
  kIdentify,
  kCopy,
  kCopyPiece,
  kCluster,
  kHandover,
};

// Searched from the front.
inline constexpr auto kMethodNames = std::to_array<std::pair<Method, std::string_view>>({
    {Method::kAcquire, "acquire"},
    {Method::kRelease, "release"},
    {Method::kKeep, "keep"},
    {Method::kRequest, "request"},
    {Method::kRequestParam, "request_param"},
    {Method::kHello, "hello"},
    {Method::kPing, "ping"},
    {Method::kAcquireAll, "acquire_all"},
    {Method::kRulesList, "rules_list"},
    {Method::kRulesLoad, "rules_load"},
    {Method::kFlow, "flow"},
    {Method::kFlows, "flows"},
    {Method::kTokens, "tokens"},
    {Method::kSessions, "sessions"},
    {Method::kInfo, "info"},
    {Method::kReclaim, "reclaim"},
    {Method::kCancel, "cancel"},
    {Method::kHistory, "history"},
    {Method::kReclaimClient, "reclaim_client"},
    {Method::kReclaimFlow, "reclaim_flow"},
    {Method::kPurge, "purge"},
    {Method::kDrain, "drain"},
    {Method::kNamespaces, "namespaces"},
    {Method::kBackup, "backup"},
    {Method::kParams, "params"},
    {Method::kWaiters, "waiters"},
    {Method::kReclaimNamespace, "reclaim_namespace"},
    {Method::kDrainNamespace, "drain_namespace"},
    {Method::kIdentify, "identify"},
    {Method::kCopy, "copy"},
    {Method::kCopyPiece, "copy_piece"},
    {Method::kCluster, "cluster"},
    {Method::kHandover, "handover"},
});

inline constexpr size_t kMethodCount = kMethodNames.size() + 1;  // kUnknown included.

std::string_view MethodName(Method method);    // "unknown" for kUnknown.
Method MethodFromName(std::string_view name);  // kUnknown when no method has this name.

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_METHOD_H_
