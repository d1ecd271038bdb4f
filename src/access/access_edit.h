// Changes of an access file's text that leave all else in it as it is, comments too.
//
// Thread: any; pure.
#ifndef NOWCALLS_ACCESS_ACCESS_EDIT_H_
#define NOWCALLS_ACCESS_ACCESS_EDIT_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/access.h"
#include "access/access_list.h"
#include "nowcalls/status.h"

namespace nowcalls::access {

struct NewPrincipal {
  std::string name{};
  Role role = Role::kObserver;
  std::vector<std::string> namespaces{};  // None: all.
  std::vector<std::string> certificates{};
  std::vector<std::string> networks{};
  std::optional<Digest> secret{};
};

// Behind all others. kAlreadyExists: the name. kInvalidArgument: as AccessList::Parse, of the file
// before or with the principal.
Result<std::string> WithPrincipal(std::string_view toml, const std::string& file,
                                  const NewPrincipal& principal);

// Beside those that the principal has. kNotFound: the name. kResourceExhausted: it has kSecretsMax.
// kFailedPrecondition: the text has a form that this cannot change. kInvalidArgument: as
// AccessList::Parse.
Result<std::string> WithSecret(std::string_view toml, const std::string& file,
                               const std::string& name, const Digest& secret);

}  // namespace nowcalls::access

#endif  // NOWCALLS_ACCESS_ACCESS_EDIT_H_
