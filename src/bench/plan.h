// The plans of driver and target.
//
// Thread: any.
#ifndef NOWCALLS_BENCH_PLAN_H_
#define NOWCALLS_BENCH_PLAN_H_

#include <vector>

#include "bench/driver.h"
#include "bench/options.h"
#include "bench/protocol.h"

namespace nowcalls::bench {

// The load's flows, then that of expiring tokens, if any.
std::vector<Flow> PlanFlows(const Options& options);

// All but new_protocol and show.
DriverPlan PlanRun(const Options& options);

// Lanes of a connection for `in_flight` requests beside held tokens.
uint32_t LanesOf(const Options& options);

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_PLAN_H_
