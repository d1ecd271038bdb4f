// The question of access.
//
// Thread: loop.
#ifndef NOWCALLS_ENGINE_PERMISSION_H_
#define NOWCALLS_ENGINE_PERMISSION_H_

#include <optional>
#include <string>
#include <string_view>

#include "access/access.h"
#include "core/books.h"
#include "core/core.h"
#include "engine/connection.h"

namespace nowcalls::engine {

// Of a connection that asks for a token before it has named a namespace.
inline constexpr std::string_view kDefaultNamespace = "default";

// Whether the connection may do what has these needs; *why continues the method's name. The
// namespace is that of its session, or of the session that it would get.
inline bool IsAllowed(const core::Core& core, const Connection& connection,
                      const access::Needs& needs, std::string* why) {
  std::optional<std::string_view> name_space;
  // A principal of all namespaces needs no lookup.
  if (connection.principal.namespaces.has_value()) {
    name_space = kDefaultNamespace;
    if (connection.session != core::kNoSession) {
      const core::Books& books = core.books();
      name_space =
          books.flows().name_space(books.sessions().at(connection.session).name_space).name;
    }
  }
  if (access::May(connection.principal, needs, name_space)) return true;
  *why = access::WhyNot(connection.principal, needs, name_space);
  return false;
}

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_PERMISSION_H_
