// Requests of the process to the operating system at its start.
//
// Thread: any; before other threads run.
#ifndef NOWCALLS_SERVER_SYSTEM_H_
#define NOWCALLS_SERVER_SYSTEM_H_

#include <cstdint>

namespace nowcalls::server {

// Broken pipes and file-size limits become errors of calls.
void IgnoreSignals();

// Least number of open files: store, server and a few connections.
inline constexpr uint64_t kFileLimitMin = 300;

// Connections of `wanted` that fit beside the other files. REQUIRES: file_limit >= kFileLimitMin.
uint32_t ConnectionsThatFit(uint32_t wanted, uint64_t file_limit);

// Memory in use, from /proc; 0: unknown.
uint64_t ResidentBytes();

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_SYSTEM_H_
