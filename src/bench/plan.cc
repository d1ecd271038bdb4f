#include "bench/plan.h"

#include <algorithm>
#include <cmath>

namespace nowcalls::bench {
namespace {

constexpr int64_t kMsNs = 1'000'000;
// Tokens that are to be released must not end before, however slow the server is.
constexpr int64_t kLifetimeMsMin = 600'000;
// Those of a load that has ended are of use to nobody, whatever ended it.
constexpr int64_t kLoadOfflineMs = 2'000;

int64_t LifetimeMs(const Options& options) {
  if (options.command == Command::kFill) return options.hold_ms;
  return kLifetimeMsMin + 2 * options.hold_ms;
}

}  // namespace

std::vector<Flow> PlanFlows(const Options& options) {
  if (options.command == Command::kIdle) return {};
  const int64_t offline_ms =
      options.command == Command::kFill ? options.client_offline_ms : kLoadOfflineMs;
  std::vector<Flow> flows;
  for (uint32_t i = 0; i < options.flows; ++i) {
    flows.push_back({options.first_flow + i, options.level, LifetimeMs(options), offline_ms});
  }
  if (options.expire_rate > 0) {
    flows.push_back({options.first_flow + options.flows, INT32_MAX, options.expire_after_ms, 0});
  }
  return flows;
}

// An acquire and its release are two operations.
double ArrivalsPerSecond(const Options& options) {
  return options.operation == Operation::kAcquire ? options.rate / 2 : options.rate;
}

uint32_t LanesOf(const Options& options) {
  // A closed loop's held tokens are part of in_flight; only a schedule goes on beside them.
  if (options.rate == 0 || options.hold_ms == 0) return options.in_flight;
  const double held = ArrivalsPerSecond(options) / options.connections *
                      static_cast<double>(options.hold_ms) / 1000;
  return options.in_flight + static_cast<uint32_t>(std::ceil(held));
}

LoadPlan PlanRun(const Options& options) {
  LoadPlan plan;
  plan.peer = options.target.peer;
  plan.connections = options.connections;
  plan.duration_ns = options.duration_ms * kMsNs;
  plan.server_pid = options.server_pid;
  plan.behind_ns_max = options.behind_ms_max * kMsNs;
  plan.flows = FlowPicker(0, options.flows, options.flow_distribution, options.seed);
  if (options.command == Command::kIdle) return plan;
  if (options.command == Command::kFill) {
    // Closed loop, no release: each cycle is one token.
    plan.workload = WorkloadOptions{options.in_flight, 0, options.tokens, 0, false};
    return plan;
  }
  plan.workload =
      WorkloadOptions{LanesOf(options), ArrivalsPerSecond(options), 0, options.hold_ms * kMsNs,
                      options.operation == Operation::kAcquire};
  plan.warm_up_ns = options.warm_up_ms * kMsNs;
  plan.expire_rate = options.expire_rate;
  plan.expire_flow = options.flows;
  return plan;
}

}  // namespace nowcalls::bench
