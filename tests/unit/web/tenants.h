// Principals of two tenants for tests of the web room.
//
// Thread: any.
#ifndef NOWCALLS_UNIT_WEB_TENANTS_H_
#define NOWCALLS_UNIT_WEB_TENANTS_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "access/access_list.h"
#include "access/gate.h"

namespace nowcalls::web {

inline access::Entry EntryOf(const std::string& name, access::Role role,
                             std::optional<std::vector<std::string>> namespaces = std::nullopt) {
  return {.principal = {.name = name, .role = role, .namespaces = std::move(namespaces)},
          .secrets = {access::DigestOf("secret-of-" + name)}};
}

inline access::Gate GateOf(std::vector<access::Entry> entries) {
  return access::Gate(std::make_shared<const access::AccessList>(std::move(entries)));
}

// "eve" sees all; "shop" its own namespaces, "api" its own.
inline access::Gate GateOfTenants() {
  using access::Role;
  return GateOf(
      {EntryOf("eve", Role::kObserver), EntryOf("shop", Role::kClient, {{"shop", "shop-*"}}),
       EntryOf("api", Role::kObserver, {{"api"}}), EntryOf("root", Role::kAdministrator)});
}

}  // namespace nowcalls::web

#endif  // NOWCALLS_UNIT_WEB_TENANTS_H_
