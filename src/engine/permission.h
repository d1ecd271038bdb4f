// The questions of access, for all protocols of connections.
//
// Thread: loop.
#ifndef NOWCALLS_ENGINE_PERMISSION_H_
#define NOWCALLS_ENGINE_PERMISSION_H_

#include <optional>
#include <string_view>

#include "access/access.h"
#include "core/books.h"
#include "core/sight.h"
#include "core/tables/flow_table.h"
#include "engine/connection.h"

namespace nowcalls::engine {

// Of a connection that asks for a token before it has named a namespace.
inline constexpr std::string_view kDefaultNamespace = "default";

// Of the role alone: Sight asks for the scope, once the namespace is known.
inline bool HasRole(const Connection& connection, const access::Needs& needs) {
  return access::May(connection.identity.principal, needs, std::nullopt);
}

// `principal` outlives it.
inline core::Sight SightOf(const access::Principal& principal) {
  if (!principal.namespaces.has_value()) return {};
  return {&principal, [](const void* whose, std::string_view name_space) {
            constexpr access::Needs kNamed{access::Role::kAnybody, access::Scope::kNamespace};
            return access::May(*static_cast<const access::Principal*>(whose), kNamed, name_space);
          }};
}
inline core::Sight SightOf(const Connection& connection) {
  return SightOf(connection.identity.principal);
}

// A flow is of the namespace of its rule, in force or removed. One that does not exist is in sight.
// Where its rule is not in force, the core's answer tells of the other kind's, which must be in
// sight, too.
inline bool IsInSight(const core::Sight& sight, const core::FlowTable& flows, const FlowKey& key) {
  if (sight.all()) return true;
  const core::FlowSlot slot = flows.Find(key);
  if (slot != core::kNoFlow && !sight.Has(flows, slot)) return false;
  if (slot != core::kNoFlow && flows.at(slot).active()) return true;
  const core::FlowSlot other = core::FindOther(flows, key);
  return other == core::kNoFlow || sight.Has(flows, other);
}

// A token is of the namespace of its flow.
inline bool IsInSight(const core::Sight& sight, const core::Books& books, TokenId token) {
  if (sight.all()) return true;
  const core::TokenSlot slot = books.tokens().Find(books.ids().ToFence(token).value);
  return slot == core::kNoToken || sight.Has(books.flows(), books.tokens().at(slot).flow_slot);
}

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_PERMISSION_H_
