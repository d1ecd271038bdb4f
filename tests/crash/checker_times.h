// When tokens may have ended by themselves, as far as the checker can tell.
//
// Thread: any; pure. Times are microseconds of CLOCK_BOOTTIME.
#ifndef NOWCALLS_CRASH_CHECKER_TIMES_H_
#define NOWCALLS_CRASH_CHECKER_TIMES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "crash/checker.h"

namespace nowcalls::crash {

inline constexpr int64_t kNeverUs = INT64_MAX;

// When what lasts `duration_ms` from then on may be over. The ledger clock counts whole
// milliseconds of the clock that `from_us` is of, so that may be up to one sooner than by a finer
// clock.
int64_t DueUs(int64_t from_us, int64_t duration_ms);

// How long a token of the flow is held when its acquire asks for no other time.
int64_t RuleHoldMs(const FlowFacts& flow);

// The stretches in which a client had no connection, and how each began.
struct Gap {
  int64_t from_us = 0;
  int64_t to_us = 0;
  bool since_restart = false;
};
using Gaps = std::map<std::string, std::vector<Gap>>;

Gaps OfflineGaps(const Cycle& cycle);

// When a token of the flow may first have ended with its session, in gaps from `after_us` on.
// kNeverUs: in none.
int64_t OfflineUs(const std::vector<Gap>& gaps, const FlowFacts& flow, int64_t restart_grace_ms,
                  int64_t after_us);

}  // namespace nowcalls::crash

#endif  // NOWCALLS_CRASH_CHECKER_TIMES_H_
