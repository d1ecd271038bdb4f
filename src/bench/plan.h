// From options to what the driver and the target are told.
//
// Thread: any.
#ifndef NOWCALLS_BENCH_PLAN_H_
#define NOWCALLS_BENCH_PLAN_H_

#include <vector>

#include "bench/driver.h"
#include "bench/options.h"
#include "bench/protocol.h"

namespace nowcalls::bench {

// The flows that the target prepares: those of the load, and behind them the one of tokens that
// expire, if there are such.
std::vector<Flow> PlanFlows(const Options& options);

// All but new_protocol and show.
DriverPlan PlanRun(const Options& options);

// Lanes that a connection needs so that `in_flight` of its requests can be in flight while other
// tokens are held.
uint32_t LanesOf(const Options& options);

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_PLAN_H_
