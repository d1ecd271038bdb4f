// The plans of loop and target.
//
// Thread: any.
#ifndef NOWCALLS_BENCH_PLAN_H_
#define NOWCALLS_BENCH_PLAN_H_

#include <vector>

#include "bench/dialect.h"
#include "bench/load_loop.h"
#include "bench/options.h"

namespace nowcalls::bench {

// The load's flows, then that of expiring tokens, if any.
std::vector<Flow> PlanFlows(const Options& options);

// All but new_dialect and show.
LoadPlan PlanRun(const Options& options);

// For `in_flight` requests beside held tokens.
uint32_t LanesOf(const Options& options);

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_PLAN_H_
