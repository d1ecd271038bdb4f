// What releases say of the calls that their tokens permitted.
#include <doctest/doctest.h>

#include <string>

#include "core/books.h"
#include "support/core_harness.h"
#include "support/only_flow.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;
using testing::ReadLedger;

TokenStatus ReleaseAs(CoreHarness* h, SessionSlot session, TokenId token, CallOutcome outcome) {
  const TokenStatus status =
      h->core().Release(h->step(), session, token, TokenScope::kSession, outcome);
  h->Commit();
  return status;
}

uint64_t Counted(CoreHarness& h, CallOutcome outcome) {
  const FlowTable& flows = h.core().flows();
  TokenCounters counters = flows.at(OnlyFlow(flows, 1)).counters;
  TokenCounters totals = h.core().flows().totals();
  CHECK(totals.of(outcome) == counters.of(outcome));
  return counters.of(outcome);
}

TEST_CASE("releases of calls that did not end well are counted beside their reasons") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 1000}});
  const SessionSlot a = h.Hello("a");
  for (const auto outcome : {CallOutcome::kOk, CallOutcome::kFailed, CallOutcome::kTimeout}) {
    CHECK(ReleaseAs(&h, a, h.Take(a, 1), outcome) == TokenStatus::kReleaseOk);
  }
  const TokenId late = h.Take(a, 1);
  h.Sleep(1500);
  ReleaseAs(&h, a, late, CallOutcome::kFailed);
  CHECK(ReleaseAs(&h, a, late, CallOutcome::kFailed) == TokenStatus::kAlreadyRelease);
  CHECK(h.Ended(1, EndReason::kReleased) == 3);
  CHECK(h.Ended(1, EndReason::kReleasedLate) == 1);
  CHECK(Counted(h, CallOutcome::kFailed) == 2);
  CHECK(Counted(h, CallOutcome::kTimeout) == 1);
}

TEST_CASE("the history keeps the releases of calls that did not end well, across a restart") {
  CoreHarness h;
  h.Rules({{.flow = 1}});
  const SessionSlot a = h.Hello("a");
  ReleaseAs(&h, a, h.Take(a, 1), CallOutcome::kOk);
  CHECK(ReadLedger(&h.store()).history.empty());
  ReleaseAs(&h, a, h.Take(a, 1), CallOutcome::kTimeout);
  const auto history = ReadLedger(&h.store()).history;
  REQUIRE(history.size() == 1);
  CHECK(history[0].reason == EndReason::kReleased);
  CHECK(history[0].outcome == CallOutcome::kTimeout);
  CHECK(history[0].client_id == "a");
  h.Restart();
  REQUIRE(h.core().books().history().size() == 1);
  CHECK(h.core().books().history().blocks()[0][0] == history[0]);
}

TEST_CASE("each token of a group has an outcome of its own") {
  CoreHarness h;
  h.Rules({{.flow = 1}, {.flow = 2}});
  const SessionSlot a = h.Hello("a");
  const AllItem items[] = {{.flow = FlowId{1}}, {.flow = FlowId{2}}};
  const auto group = h.AskAll(a, {.items = items, .request_id = 5}, 1);
  REQUIRE(group->tokens.size() == 2);
  ReleaseAs(&h, a, group->tokens[0].id, CallOutcome::kFailed);
  ReleaseAs(&h, a, group->tokens[1].id, CallOutcome::kOk);
  CHECK(Counted(h, CallOutcome::kFailed) == 1);
  CHECK(ReadLedger(&h.store()).history.size() == 1);
}

}  // namespace
}  // namespace nowcalls::core
