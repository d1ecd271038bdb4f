#include "net/endpoint.h"

namespace nowcalls::net {

Result<Endpoint> ParseServer(std::string_view text) {
  // No host begins like that.
  if (text.starts_with('/') || text.starts_with("./") || text.starts_with("../")) {
    return Endpoint::Unix(std::string(text));
  }
  Result<HostPort> parsed = ParseHostPort(text);
  if (!parsed.ok()) return parsed.status();
  if (parsed->port == 0) return Status::InvalidArgument("port 0 is no server's");
  return Endpoint::Tcp(*std::move(parsed));
}

}  // namespace nowcalls::net
