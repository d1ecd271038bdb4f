// The table of methods of MessagePack-RPC. src/README.md says how to add one.
//
// Thread: any.
#ifndef NOWCALLS_ENGINE_RPC_METHODS_H_
#define NOWCALLS_ENGINE_RPC_METHODS_H_

#include <span>
#include <string_view>

#include "access/access.h"
#include "engine/protocol.h"
#include "engine/rpc/service.h"
#include "wire/messages.h"

namespace nowcalls::engine::rpc {

struct MethodRow {    // NOLINT(cppcoreguidelines-pro-type-member-init)
  wire::Method id{};  // Its name: wire::MethodName.
  Cost cost{};
  access::Needs needs;
  void (*handler)(const Call&) = nullptr;
  bool as_notification = false;  // May come as one; else notifications are ignored.
};

const MethodRow* FindMethod(wire::Method id);  // nullptr for kUnknown.
std::span<const MethodRow> AllMethods();

}  // namespace nowcalls::engine::rpc

#endif  // NOWCALLS_ENGINE_RPC_METHODS_H_
