// ReachableAddress: the first address of a host where somebody answers.
//
// Thread: any; blocks until the deadline at most.
#ifndef NOWCALLS_BENCH_REACHABLE_ADDRESS_H_
#define NOWCALLS_BENCH_REACHABLE_ADDRESS_H_

#include <sys/socket.h>

#include <cstdint>

#include "base/host_port.h"
#include "nowcalls/status.h"

namespace nowcalls::bench {

// kUnavailable: none of the addresses accepts a connection. `deadline_ms` is a BoottimeMs value.
Result<sockaddr_storage> ReachableAddress(const HostPort& peer, int64_t deadline_ms);

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_REACHABLE_ADDRESS_H_
