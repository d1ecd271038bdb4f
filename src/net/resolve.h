// The addresses of a host name, before a deadline.
//
// Thread: any. A late lookup leaves a detached thread, which ends with the system's resolver.
#ifndef NOWCALLS_NET_RESOLVE_H_
#define NOWCALLS_NET_RESOLVE_H_

#include <netdb.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "base/host_port.h"
#include "net/address.h"
#include "nowcalls/status.h"

namespace nowcalls::net {

// getaddrinfo, or a test's double.
using Lookup =
    std::function<int(const char* host, const char* port, const addrinfo* hints, addrinfo** found)>;

// At least one address, in the resolver's order. kUnavailable: why there is none, without the
// peer's name. `deadline_ms`: BoottimeMs.
Result<std::vector<SocketAddress>> ResolveBefore(int64_t deadline_ms, const HostPort& peer,
                                                 const Lookup& lookup = getaddrinfo);

}  // namespace nowcalls::net

#endif  // NOWCALLS_NET_RESOLVE_H_
