// The loop over whole clusters: real servers under load on a real etcd, of which one thing after
// the other is killed, stopped or cut off, and the outside checker.
//
// Thread: one, which starts the processes and the client threads. A cycle is the time of one
// writer. What the next writer has is the ledger that the checker judges.
#ifndef NOWCALLS_CRASH_CLUSTER_LOOP_H_
#define NOWCALLS_CRASH_CLUSTER_LOOP_H_

#include "crash/crash_loop.h"

namespace nowcalls::crash {

// CrashLoopOptions::whitebox has no meaning here. Throws std::runtime_error as RunCrashLoop.
CrashLoopResult RunClusterLoop(const CrashLoopOptions& options);

}  // namespace nowcalls::crash

#endif  // NOWCALLS_CRASH_CLUSTER_LOOP_H_
