// The table of methods of MessagePack-RPC. src/README.md says how to add one.
//
// Thread: any.
#ifndef NOWCALLS_ENGINE_RPC_METHODS_H_
#define NOWCALLS_ENGINE_RPC_METHODS_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "engine/protocol.h"
#include "engine/rpc/service.h"
#include "wire/messages.h"

namespace nowcalls::engine::rpc {

// The least role that may call the method. Documented, enforced nowhere: every peer is an
// administrator today.
enum class Role : uint8_t { kEveryone, kAdministrator };

// The most that a method changes.
enum class Changes : uint8_t {
  kNothing,
  kSession,  // Of the connection.
  kTokens,   // And with them sessions and waiters.
  kRules,    // And with them tokens and waiters.
  kFiles,    // On the server's machine.
};

struct MethodRow {
  wire::Method id{};  // Its name: wire::MethodName.
  Cost cost{};
  Role least_role{};
  Changes changes{};
  void (*handler)(const Call&) = nullptr;
  bool as_notification = false;  // May come as one; else notifications are ignored.
};

const MethodRow* FindMethod(wire::Method id);  // nullptr for kUnknown.
std::span<const MethodRow> AllMethods();

}  // namespace nowcalls::engine::rpc

#endif  // NOWCALLS_ENGINE_RPC_METHODS_H_
