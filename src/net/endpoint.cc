#include "net/endpoint.h"

#include "base/text.h"

namespace nowcalls::net {

Result<Endpoint> ParseServer(std::string_view text) {
  // No host begins like that.
  if (text.starts_with('/') || text.starts_with("./") || text.starts_with("../")) {
    return Endpoint::Unix(std::string(text));
  }
  Result<HostPort> parsed = ParseHostPort(text);
  if (!parsed.ok()) return parsed.status();
  if (parsed->port == 0) {
    return Status::InvalidArgument(Quoted(text) + ": port 0 is no server's");
  }
  return Endpoint::Tcp(*std::move(parsed));
}

}  // namespace nowcalls::net
