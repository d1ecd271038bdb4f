// Who may do what: principals, and the question that each protocol asks before it acts.
//
// Thread: any; plain values.
#ifndef NOWCALLS_ACCESS_ACCESS_H_
#define NOWCALLS_ACCESS_ACCESS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/peer.h"

namespace nowcalls::access {

// Each may do what those before it may.
enum class Role : uint8_t {
  kAnybody,        // Learns whether the server lives.
  kObserver,       // Sees.
  kClient,         // Takes and releases.
  kAdministrator,  // Changes rules, ends tokens of others, makes backups.
};
std::string_view RoleName(Role role);  // "observer"
// nullopt: not one that a principal may be given.
std::optional<Role> RoleNamed(std::string_view name);

enum class Scope : uint8_t {
  kServer,     // All of it. Of an administrator's acts: all namespaces.
  kNamespace,  // One that is named, or the session's.
  kFlow,       // That of the flow's rule.
  kToken,      // That of the token's flow.
};

// Columns of a table of methods.
struct Needs {
  Role role;
  Scope scope;

  consteval Needs(Role least_role, Scope its_scope) : role(least_role), scope(its_scope) {}
};

struct Principal {
  std::string name{};  // Empty: nobody has asked.
  Role role = Role::kAnybody;
  // Names; with "*" at the end all names that begin so. None: every namespace.
  std::optional<std::vector<std::string>> namespaces{};

  bool operator==(const Principal&) const = default;
};

// `name_space`: nullopt where it is not known yet, or the scope is the server.
bool May(const Principal& principal, const Needs& needs,
         std::optional<std::string_view> name_space);
// Why not, for a person: "needs the role administrator, and unix:7 is client".
std::string WhyNot(const Principal& principal, const Needs& needs,
                   std::optional<std::string_view> name_space);

// Without an access file.
Principal PrincipalOf(const net::Peer& peer);

}  // namespace nowcalls::access

#endif  // NOWCALLS_ACCESS_ACCESS_H_
