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

Result<std::vector<Endpoint>> ParseServers(std::string_view text) {
  std::vector<Endpoint> servers;
  for (size_t comma = 0; comma != std::string_view::npos; text.remove_prefix(comma + 1)) {
    comma = text.find(',');
    Result<Endpoint> server = ParseServer(text.substr(0, comma));
    if (!server.ok()) return server.status();
    servers.push_back(*std::move(server));
    if (comma == std::string_view::npos) break;
  }
  return servers;
}

}  // namespace nowcalls::net
