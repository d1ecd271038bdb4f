// The process: what it asks of the operating system at its start.
//
// Thread: any; before other threads run.
#ifndef NOWCALLS_SERVER_SYSTEM_H_
#define NOWCALLS_SERVER_SYSTEM_H_

#include <cstdint>

namespace nowcalls::server {

// A peer that is gone and a file-size limit show as errors of calls instead. The end of a child
// waits until it is asked for.
void IgnoreSignals();

// Fewer files than these are not enough: those of the store and of the server itself, and a few
// connections.
inline constexpr uint64_t kFileLimitMin = 300;

// How many of `wanted` connections fit when `file_limit` files may be open: the store and the
// sockets of the server itself need some too. REQUIRES: file_limit >= kFileLimitMin.
uint32_t ConnectionsThatFit(uint32_t wanted, uint64_t file_limit);

// Memory in use, from /proc; 0 if that cannot be told.
uint64_t ResidentBytes();

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_SYSTEM_H_
