// The table of methods of MessagePack-RPC. src/README.md says how to add one ("Where do I add").
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

// The least role that may call the method. Every peer is an administrator today: the role is
// carried and documented, and enforced nowhere.
enum class Role : uint8_t { kEveryone, kAdministrator };

// What a method may change.
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
  // Decodes the parameters, asks the core, and encodes the reply into one of the buffers of
  // Outputs.
  void (*handler)(const Call&) = nullptr;
  // Whether it may come as a notification. Others are ignored.
  bool as_notification = false;
};

// nullptr for kUnknown.
const MethodRow* FindMethod(wire::Method id);
std::span<const MethodRow> AllMethods();

}  // namespace nowcalls::engine::rpc

#endif  // NOWCALLS_ENGINE_RPC_METHODS_H_
