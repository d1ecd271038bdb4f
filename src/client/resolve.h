// The addresses of a host name, before a deadline.
//
// Thread: any. A late lookup leaves behind a detached thread, which ends with the system's
// resolver.
#ifndef NOWCALLS_CLIENT_RESOLVE_H_
#define NOWCALLS_CLIENT_RESOLVE_H_

#include <netdb.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "base/host_port.h"
#include "nowcalls/status.h"

namespace nowcalls::client {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

// getaddrinfo, or a test's double.
using Lookup =
    std::function<int(const char* host, const char* port, const addrinfo* hints, addrinfo** found)>;

// At least one TCP address of `peer`. kUnavailable: why there is none, without the peer's name.
// `deadline_ms`: BoottimeMs.
Result<Addresses> Resolve(const HostPort& peer, int64_t deadline_ms,
                          const Lookup& lookup = getaddrinfo);

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_RESOLVE_H_
