// Per-client caps and shadow mode.
#include <doctest/doctest.h>

#include "support/core_harness.h"
#include "support/only_flow.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;

const Flow& CappedFlow(CoreHarness* h) {
  return h->core().flows().at(OnlyFlow(h->core().flows(), 1));
}

TEST_CASE("one session may hold no more than maxPerClient, others the rest") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 10, .max_per_client = 3}});
  const SessionSlot a = h.Hello("a");
  const SessionSlot b = h.Hello("b");
  const TokenId two = h.Take(a, 1, 2);
  h.Take(a, 1);
  const AcquireAnswer refused = h.Acquire(a, 1);
  CHECK(refused.status == TokenStatus::kBlocked);
  CHECK(refused.refused_by == RefusedBy::kClientCap);
  CHECK(refused.now_calls == 3);
  CHECK(h.Acquire(b, 1, 3).status == TokenStatus::kOk);
  CHECK(h.Acquire(b, 1).refused_by == RefusedBy::kClientCap);
  h.Release(a, two);
  CHECK(h.Acquire(a, 1, 2).status == TokenStatus::kOk);
  CHECK(CappedFlow(&h).counters.refused[static_cast<size_t>(RefusedBy::kClientCap)] == 2);
}

TEST_CASE("a share of the level follows the level and is one call at least") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 10, .max_per_client_percent = 25}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1, 2);
  CHECK(h.Acquire(a, 1).refused_by == RefusedBy::kClientCap);
  h.Rules({{.flow = 1, .count = 12, .max_per_client_percent = 25}});
  CHECK(h.Acquire(a, 1).status == TokenStatus::kOk);
  h.Rules({{.flow = 1, .count = 5, .max_per_client_percent = 1}});
  CHECK(h.Acquire(h.Hello("b"), 1).status == TokenStatus::kOk);
}

TEST_CASE("a cap that is new counts what is out; one that goes is forgotten; a restart keeps it") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 10, .client_offline_ms = 60'000}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1, 3);
  h.Rules({{.flow = 1, .count = 10, .client_offline_ms = 60'000, .max_per_client = 4}});
  CHECK(h.Acquire(a, 1, 2).refused_by == RefusedBy::kClientCap);
  h.Take(a, 1);
  h.Restart();
  const SessionSlot back = h.Hello("a");
  CHECK(h.Acquire(back, 1).refused_by == RefusedBy::kClientCap);
  h.Rules({{.flow = 1, .count = 10, .client_offline_ms = 60'000}});
  CHECK(h.Acquire(back, 1).status == TokenStatus::kOk);
}

TEST_CASE("loads with a cap and without, in turns, count what is out once") {
  CoreHarness h;
  const testing::RuleOptions uncapped{.flow = 1, .count = 10, .client_offline_ms = 60'000};
  testing::RuleOptions capped = uncapped;
  capped.max_per_client = 2;
  h.Rules({uncapped});
  const SessionSlot a = h.Hello("a");
  std::vector<TokenId> tokens{h.Take(a, 1)};
  CHECK(CappedFlow(&h).held_by_session == nullptr);
  h.Rules({capped});
  const auto* counts = CappedFlow(&h).held_by_session.get();
  REQUIRE(counts != nullptr);
  h.Rules({uncapped});
  for (int i = 0; i < 4; ++i) tokens.push_back(h.Take(a, 1));
  h.Release(a, tokens.back());
  tokens.pop_back();
  h.Rules({capped});
  CHECK(CappedFlow(&h).held_by_session.get() == counts);
  CHECK(h.Acquire(a, 1).refused_by == RefusedBy::kClientCap);
  for (int i = 0; i < 3; ++i) {
    h.Release(a, tokens.back());
    tokens.pop_back();
  }
  tokens.push_back(h.Take(a, 1));
  CHECK(h.Acquire(a, 1).refused_by == RefusedBy::kClientCap);
  h.Rules({uncapped});
  for (const TokenId token : tokens) h.Release(a, token);
  CHECK(CappedFlow(&h).held_by_session == nullptr);
}

TEST_CASE("shadow mode grants what it would have refused, and counts it by limit") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 2, .max_per_client = 1, .shadow = true}});
  const SessionSlot a = h.Hello("a");
  for (int i = 0; i < 4; ++i) CHECK(h.Acquire(a, 1).status == TokenStatus::kOk);
  CHECK(h.NowCalls(1) == 4);
  const TokenCounters& counters = CappedFlow(&h).counters;
  CHECK(counters.granted == 4);
  CHECK(counters.shadow_refused[static_cast<size_t>(RefusedBy::kClientCap)] == 1);
  CHECK(counters.shadow_refused[static_cast<size_t>(RefusedBy::kLevel)] == 2);
  CHECK(counters.refused[static_cast<size_t>(RefusedBy::kLevel)] == 0);
  h.Rules({{.flow = 1, .count = 2}});
  CHECK(h.Acquire(a, 1).status == TokenStatus::kBlocked);
}

TEST_CASE("what shadow mode lets go from the queue beyond a limit is counted, too") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1);
  AcquireRequest request;
  request.flow = FlowId{1};
  request.count = 1;
  request.wait_ms = 5'000;
  h.Ask(a, request, 1);
  h.Ask(a, request, 2);
  h.Rules({{.flow = 1, .count = 2, .shadow = true}});
  CHECK(h.NowCalls(1) == 3);
  const TokenCounters& counters = CappedFlow(&h).counters;
  CHECK(counters.granted_from_queue == 2);
  CHECK(counters.shadow_refused[static_cast<size_t>(RefusedBy::kLevel)] == 1);
}

TEST_CASE("decimal counts and shares make the whole numbers they say") {
  CHECK(WholeCalls(8.2 * 15) == 123);
  CHECK(WholeCalls(4.6 * 25) == 115);
  CHECK(WholeCalls(375 * 18.4 / 100) == 69);
  CHECK(WholeCalls(122.999) == 122);
  CHECK(WholeCalls(0) == 0);
  CHECK(WholeCalls(0.5) == 0);
  CHECK(WholeCalls(9007199254740992) == 9007199254740992);
  CHECK(WholeCalls(1e300) == 9'000'000'000'000'000'000);
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 8.2, .avg_local = true},
           {.flow = 2, .count = 375, .max_per_client_percent = 18.4}});
  SessionSlot last = kNoSession;
  for (int i = 0; i < 15; ++i) last = h.Hello("c" + std::to_string(i));
  CHECK(h.Acquire(last, 1).level == 123);
  h.Take(last, 2, 69);
  CHECK(h.Acquire(last, 2).refused_by == RefusedBy::kClientCap);
}

TEST_CASE("shadow mode does not lift the limits of the server") {
  auto options = testing::HarnessOptions();
  options.limits.tokens_max = 1;
  CoreHarness h(options);
  h.Rules({{.flow = 1, .count = 1, .shadow = true}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1);
  CHECK(h.Acquire(a, 1).refused_by == RefusedBy::kTokenLimit);
  h.core().SetDiskLow(true);
  CHECK(h.Acquire(a, 1).refused_by == RefusedBy::kDiskLow);
}

}  // namespace
}  // namespace nowcalls::core
