#include "access/access.h"

#include <algorithm>

#include "base/text.h"

namespace nowcalls::access {
namespace {

bool Covers(std::string_view pattern, std::string_view name_space) {
  if (!pattern.ends_with('*')) return pattern == name_space;
  return name_space.starts_with(pattern.substr(0, pattern.size() - 1));
}

bool Reaches(const Principal& principal, std::string_view name_space) {
  return !principal.namespaces.has_value() ||
         std::any_of(principal.namespaces->begin(), principal.namespaces->end(),
                     [&](const std::string& pattern) { return Covers(pattern, name_space); });
}

// An act about the whole server is about all namespaces; what is seen there has no namespace.
bool NeedsAllNamespaces(const Needs& needs) {
  return needs.scope == Scope::kServer && needs.role == Role::kAdministrator;
}

}  // namespace

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kAnybody: return "anybody";
    case Role::kObserver: return "observer";
    case Role::kClient: return "client";
    case Role::kAdministrator: return "administrator";
  }
  return "";
}

std::optional<Role> RoleNamed(std::string_view name) {
  for (const Role role : {Role::kObserver, Role::kClient, Role::kAdministrator}) {
    if (name == RoleName(role)) return role;
  }
  return std::nullopt;
}

bool May(const Principal& principal, const Needs& needs,
         std::optional<std::string_view> name_space) {
  if (principal.role < needs.role) return false;
  if (NeedsAllNamespaces(needs)) return !principal.namespaces.has_value();
  return needs.scope == Scope::kServer || !name_space.has_value() ||
         Reaches(principal, *name_space);
}

std::string WhyNot(const Principal& principal, const Needs& needs,
                   std::optional<std::string_view> name_space) {
  const std::string who = principal.name.empty() ? "this connection" : principal.name;
  if (principal.role < needs.role) {
    return "needs the role " + std::string(RoleName(needs.role)) + ", and " + who + " is " +
           std::string(RoleName(principal.role));
  }
  if (NeedsAllNamespaces(needs)) return "is about all namespaces, and " + who + " has some";
  return "is about namespace " + Quoted(name_space.value_or("")) + ", which " + who +
         " may not reach";
}

Principal PrincipalOf(const net::Peer& peer) {
  return {.name = peer.name, .role = Role::kAdministrator};
}

}  // namespace nowcalls::access
