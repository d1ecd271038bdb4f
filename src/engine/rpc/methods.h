// The table of methods of MessagePack-RPC. To add a method:
//
//   1. its name, in wire/method.h, and its decoder and encoder beside those of its kind in src/wire
//   2. its row, in methods.cc
//   3. its handler, declared in handlers.h
//   4. its section in src/wire/PROTOCOL.md
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
std::string_view RoleName(Role role);

// What a method may change.
enum class Changes : uint8_t {
  kNothing,
  kSession,  // Of the connection.
  kTokens,   // And with them sessions and waiters.
  kRules,    // And with them tokens and waiters.
  kFiles,    // On the server's machine.
};

struct MethodRow {
  wire::Method id;  // Its name: wire::MethodName.
  Cost cost;
  Role least_role;
  Changes changes;
  // Decodes the parameters, asks the core, and encodes the reply into one of the buffers of
  // Outputs.
  void (*handler)(const Call&);
  // Whether it may come as a notification. Others are ignored.
  bool as_notification = false;
};

// nullptr for kUnknown.
const MethodRow* FindMethod(wire::Method id);
std::span<const MethodRow> AllMethods();

}  // namespace nowcalls::engine::rpc

#endif  // NOWCALLS_ENGINE_RPC_METHODS_H_
