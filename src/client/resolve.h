// From a host's name to its addresses, before a deadline.
//
// Thread: any. getaddrinfo can neither be bounded nor interrupted, and a name server that is silent
// takes many seconds. So a name is looked up on a thread of its own, which is left to itself when
// the deadline passes and ends when the system's resolver does. An address in digits needs neither
// a lookup nor a thread.
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

// getaddrinfo, or what stands for it in a test.
using Lookup =
    std::function<int(const char* host, const char* port, const addrinfo* hints, addrinfo** found)>;

// The addresses of `peer` for TCP, at least one. kUnavailable says why there is none, without the
// peer's name. `deadline_ms` is a BoottimeMs value.
Result<Addresses> Resolve(const HostPort& peer, int64_t deadline_ms,
                          const Lookup& lookup = getaddrinfo);

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_RESOLVE_H_
