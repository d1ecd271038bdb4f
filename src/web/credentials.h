// Credentials: what an Authorization header shows.
//
// Thread: any; pure. Nothing here may be logged or answered.
#ifndef NOWCALLS_WEB_CREDENTIALS_H_
#define NOWCALLS_WEB_CREDENTIALS_H_

#include <optional>
#include <string>
#include <string_view>

namespace nowcalls::web {

struct Credentials {
  std::string user{};    // Of Basic; empty: none was named.
  std::string secret{};  // The token of Bearer, or the password of Basic.
};

// nullopt: neither Bearer nor Basic, or no secret in it.
std::optional<Credentials> CredentialsOf(std::string_view authorization);

// nullopt: `text` is no Base64 (RFC 4648, with padding).
std::optional<std::string> FromBase64(std::string_view text);

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_CREDENTIALS_H_
