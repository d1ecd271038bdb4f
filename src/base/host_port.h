// HOST:PORT as operators write it.
//
// Thread: any.
#ifndef NOWCALLS_BASE_HOST_PORT_H_
#define NOWCALLS_BASE_HOST_PORT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "nowcalls/status.h"

namespace nowcalls {

struct HostPort {
  std::string host;  // A name or an address, without the brackets of "[::1]".
  uint16_t port = 0;

  // "127.0.0.1:18730", "[::1]:18730".
  std::string ToString() const;
  bool operator==(const HostPort&) const = default;
};

// "HOST:PORT" or "[IPV6]:PORT", port 0..65535; else kInvalidArgument.
Result<HostPort> ParseHostPort(std::string_view text);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_HOST_PORT_H_
