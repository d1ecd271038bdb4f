// What the tests of the checker share: cycles made by hand, and what must be found in them.
//
// Thread: one. Times are milliseconds.
#ifndef NOWCALLS_CRASH_CHECKER_HARNESS_H_
#define NOWCALLS_CRASH_CHECKER_HARNESS_H_

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "crash/checker.h"
#include "crash/history.h"

namespace nowcalls::crash {

inline constexpr int64_t kMs = 1000;
inline constexpr int64_t kGraceMs = 1'000;

// Flow 1: 10 at once, held for two minutes. Flow 2: short times. Flow 3: no fixed level. Flow 4:
// held for 3 s at most.
inline std::vector<FlowFacts> Flows() {
  return {{1, 10, 60'000, 60'000},
          {2, 10, 100, 200},
          {3, 0, 60'000, 60'000},
          {4, 10, 60'000, 60'000, 3'000}};
}

// A cycle under construction: operations at times in milliseconds, the ledger as it should be.
class CycleBuilder {
 public:
  explicit CycleBuilder(int64_t started_ms = 0, int64_t dead_ms = 1'000) {
    cycle_.started_us = started_ms * kMs;
    cycle_.dead_us = dead_ms * kMs;
  }

  CycleBuilder& Up(int64_t at_ms, const std::string& client) {
    cycle_.history.links.push_back({client, at_ms * kMs, true});
    return *this;
  }
  CycleBuilder& Down(int64_t at_ms, const std::string& client) {
    cycle_.history.links.push_back({client, at_ms * kMs, false});
    return *this;
  }

  // Asked at `at_ms`, answered one millisecond later. The fence is the token's id.
  CycleBuilder& Granted(int64_t at_ms, uint64_t token, int64_t flow, int64_t count,
                        int64_t hold_ms = 120'000) {
    Operation operation = Ask(at_ms, Action::kAcquire);
    operation.flow_id = flow;
    operation.count = count;
    operation.token_id = token;
    operation.fence = token;
    operation.now_calls = count;
    operation.level = 10;
    operation.hold_ms = hold_ms;
    operation.grant = {token};
    return Answer(operation, Outcome::kGranted);
  }
  struct Part {
    int64_t flow = 0;
    int64_t count = 0;
    uint64_t token = 0;  // If it is granted.
  };
  CycleBuilder& Group(int64_t at_ms, Outcome outcome, const std::vector<Part>& parts) {
    Operation operation = Ask(at_ms, Action::kAcquire);
    operation.items = parts.size();
    for (const Part& part : parts) {
      operation.flow_id = part.flow;
      operation.count = part.count;
      operation.token_id = operation.fence = part.token;
      operation.hold_ms = outcome == Outcome::kGranted ? 120'000 : 0;
      Answer(operation, outcome);
    }
    if (outcome == Outcome::kGranted) SetGrant({&last() - parts.size() + 1, parts.size()});
    return *this;
  }
  CycleBuilder& UnansweredAcquire(int64_t at_ms, int64_t flow, int64_t count) {
    Operation operation = Ask(at_ms, Action::kAcquire);
    operation.flow_id = flow;
    operation.count = count;
    return Answer(operation, Outcome::kUnknown);
  }
  // The last acquire gets a request id.
  CycleBuilder& WithRequest(uint64_t request) {
    for (size_t i = 0; i < last().items; ++i) (&last() - i)->request_id = request;
    return *this;
  }
  CycleBuilder& RefusedAcquire(int64_t at_ms, int64_t flow, int64_t count) {
    Operation operation = Ask(at_ms, Action::kAcquire);
    operation.flow_id = flow;
    operation.count = count;
    return Answer(operation, Outcome::kRefused);
  }
  CycleBuilder& Cancel(int64_t at_ms, uint64_t request, Outcome outcome) {
    Operation operation = Ask(at_ms, Action::kCancel);
    operation.request_id = request;
    return Answer(operation, outcome);
  }
  CycleBuilder& Reclaim(int64_t at_ms, uint64_t token, Outcome outcome) {
    Operation operation = Ask(at_ms, Action::kReclaim);
    operation.client = "operator";
    operation.token_id = token;
    return Answer(operation, outcome);
  }
  // Of the flow, or with a purge or for alice the same.
  CycleBuilder& ReclaimMany(int64_t at_ms, Action action, int64_t flow, int64_t reclaimed,
                            bool more, Outcome outcome = Outcome::kReclaimed) {
    Operation operation = Ask(at_ms, action);
    operation.client = "operator";
    operation.flow_id = flow;
    operation.holder = "alice";
    operation.reclaimed = reclaimed;
    operation.more = more;
    return Answer(operation, outcome);
  }
  CycleBuilder& Drain(int64_t at_ms, int64_t flow, bool on, Outcome outcome = Outcome::kDone) {
    Operation operation = Ask(at_ms, on ? Action::kDrain : Action::kUndrain);
    operation.client = "operator";
    operation.flow_id = flow;
    return Answer(operation, outcome);
  }
  CycleBuilder& Release(int64_t at_ms, uint64_t token, Outcome outcome) {
    Operation operation = Ask(at_ms, Action::kRelease);
    operation.token_id = token;
    return Answer(operation, outcome);
  }
  CycleBuilder& Keep(int64_t at_ms, uint64_t token, int64_t hold_ms,
                     Outcome outcome = Outcome::kKept) {
    Operation operation = Ask(at_ms, Action::kKeep);
    operation.token_id = token;
    operation.hold_ms = hold_ms;
    return Answer(operation, outcome);
  }

  // The last acquire asked for this hold.
  CycleBuilder& Wanted(int64_t hold_ms) {
    last().wanted_ms = hold_ms;
    return *this;
  }
  CycleBuilder& Lost(int64_t at_ms, uint64_t token, const std::string& reason) {
    cycle_.history.lost.push_back({"alice", token, reason, at_ms * kMs});
    return *this;
  }

  // In the dump, and counted by stat.
  CycleBuilder& Dumped(uint64_t token, int64_t flow, int64_t count, int64_t hold_ms = 120'000) {
    cycle_.ledger.tokens.push_back({token, flow, "alice", count, token, 0, hold_ms});
    cycle_.ledger.now_calls[flow] += count;
    ++cycle_.ledger.token_counts[flow];
    return *this;
  }

  Cycle& cycle() { return cycle_; }
  Operation& last() { return cycle_.history.operations.back(); }

 private:
  Operation Ask(int64_t at_ms, Action action) {
    Operation operation;
    operation.number = ++numbers_;
    operation.client = "alice";
    operation.action = action;
    operation.asked_us = at_ms * kMs;
    return operation;
  }
  CycleBuilder& Answer(Operation operation, Outcome outcome) {
    operation.outcome = outcome;
    if (outcome != Outcome::kUnknown) operation.answered_us = operation.asked_us + kMs;
    cycle_.history.operations.push_back(operation);
    return *this;
  }

  Cycle cycle_;
  int64_t numbers_ = 0;
};

inline Violations CheckOne(CycleBuilder& builder) {
  return Checker(Flows(), kGraceMs).CheckCycle(builder.cycle());
}

// Exactly one violation, of the given invariant and about `what`.
inline void RequireOne(const Violations& violations, const std::string& invariant,
                       const std::string& what) {
  REQUIRE(violations.size() == 1);
  CAPTURE(violations[0]);
  CHECK(violations[0].starts_with(invariant));
  CHECK(violations[0].find(what) != std::string::npos);
}

}  // namespace nowcalls::crash

#endif  // NOWCALLS_CRASH_CHECKER_HARNESS_H_
