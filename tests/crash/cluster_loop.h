// The loop over whole clusters: real servers under load on a real etcd, of which one thing after
// the other is killed, stopped or cut off (cluster_end.h), and the outside checker.
//
// Thread: one, which starts the processes and the client threads. A cycle is the time of one
// writer. What the next writer has is the ledger that the checker judges. In some cycles a standby
// is away until the log lacks what it needs, and comes back under the load of the next one.
#ifndef NOWCALLS_CRASH_CLUSTER_LOOP_H_
#define NOWCALLS_CRASH_CLUSTER_LOOP_H_

#include <string>

#include "crash/crash_loop.h"
#include "support/process.h"

namespace nowcalls::crash {

// Members that break a promise, which the loop must find.
struct PlantedFault {
  std::string program;  // Empty: nowcalls-server.
  testing::Environment environment;
  std::string only_end;  // Each cycle ends so (NameOf of ClusterEnd); empty: in all ways.
};

// CrashLoopOptions::whitebox has no meaning here. Throws std::runtime_error as RunCrashLoop.
CrashLoopResult RunClusterLoop(const CrashLoopOptions& options, const PlantedFault& fault = {});

}  // namespace nowcalls::crash

#endif  // NOWCALLS_CRASH_CLUSTER_LOOP_H_
