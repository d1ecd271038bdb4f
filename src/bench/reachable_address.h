// ReachableAddress: the first address of a host that accepts.
//
// Thread: any; blocks until the deadline.
#ifndef NOWCALLS_BENCH_REACHABLE_ADDRESS_H_
#define NOWCALLS_BENCH_REACHABLE_ADDRESS_H_

#include <sys/socket.h>

#include <cstdint>

#include "base/host_port.h"
#include "nowcalls/status.h"

namespace nowcalls::bench {

// kUnavailable: none accepts. `deadline_ms`: BoottimeMs.
Result<sockaddr_storage> ReachableAddress(const HostPort& peer, int64_t deadline_ms);

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_REACHABLE_ADDRESS_H_
