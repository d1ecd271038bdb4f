// Acquires that wait: who is granted when, who is told what, and who is forgotten.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "support/core_harness.h"
#include "support/only_flow.h"
#include "unit/core/waiting_calls.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;
using testing::FindWrongBook;

const Flow& FlowOf(CoreHarness* h, int64_t flow = 1) {
  return h->core().flows().at(OnlyFlow(h->core().flows(), flow));
}

uint64_t Refused(CoreHarness* h, RefusedBy limit, int64_t flow = 1) {
  return FlowOf(h, flow).counters.refused[static_cast<size_t>(limit)];
}

TEST_CASE("waiters are granted first come first served as soon as there is room") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 2}});
  const SessionSlot a = h.Hello("a");
  const TokenId first = h.Take(a, 1);
  const TokenId second = h.Take(a, 1);
  for (const uint32_t tag : {1, 2, 3}) CHECK_FALSE(h.Ask(a, Wait(), tag).has_value());
  CHECK(h.core().wait_queues().size() == 3);
  CHECK(h.LateText().empty());
  h.Release(a, first);
  CHECK(h.LateText() == "1 OK");
  h.Release(a, second);
  CHECK(h.LateText() == "2 OK");
  CHECK(h.NowCalls(1) == 2);
  CHECK(h.core().wait_queues().size() == 1);
  const TokenCounters& counters = FlowOf(&h).counters;
  CHECK(counters.queued == 3);
  CHECK(counters.granted_from_queue == 2);
  CHECK(counters.granted == 4);
}

TEST_CASE("a request's own cap shortens every wait, and with 0 there is none") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1, .refuse_strategy = 3, .max_queueing_ms = 500}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1);
  AcquireRequest by_rule{.flow = FlowId{1}, .prioritized = true, .wait_ms_max = 15};
  AcquireRequest by_request = Wait(1, 1000);
  by_request.wait_ms_max = 15;
  for (const AcquireRequest& request : {by_rule, by_request}) {
    CHECK_FALSE(h.Ask(a, request, 1).has_value());
    h.Pass(14);
    CHECK(h.LateText().empty());
    h.Pass(1);
    CHECK(h.LateText() == "1 BLOCKED queue_timeout");
  }
  by_rule.wait_ms_max = by_request.wait_ms_max = 0;
  CHECK(h.Ask(a, by_rule, 2)->status == TokenStatus::kBlocked);
  CHECK(h.Ask(a, by_request, 2)->status == TokenStatus::kBlocked);
}

TEST_CASE("one release lets as many go as there is room for") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 5}});
  const SessionSlot a = h.Hello("a");
  const TokenId all = h.Take(a, 1, 5);
  for (const uint32_t tag : {1, 2, 3, 4}) h.Ask(a, Wait(2), tag);
  h.Release(a, all);
  CHECK(h.LateText() == "1 OK, 2 OK");
  CHECK(h.NowCalls(1) == 4);
}

TEST_CASE("prioritized waiters go first, whenever they came") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1);
  h.Ask(a, Wait(1), 1);
  h.Ask(a, Wait(1, 1000, true), 2);
  h.Ask(a, Wait(1), 3);
  h.Ask(a, Wait(1, 1000, true), 4);
  h.Rules({{.flow = 1, .count = 3}});
  CHECK(h.LateText() == "2 OK, 4 OK");
  h.Release(a, token);
  CHECK(h.LateText() == "1 OK");
}

TEST_CASE("a waiter that needs many is not starved by later ones that need few") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 4}});
  const SessionSlot a = h.Hello("a");
  const TokenId one = h.Take(a, 1);
  const TokenId two = h.Take(a, 1);
  h.Ask(a, Wait(4), 1);
  h.Ask(a, Wait(1), 2);
  CHECK(h.LateText().empty());  // There is room for the second, but it is not its turn.
  const AcquireAnswer barging = h.Acquire(a, 1);
  CHECK(barging.status == TokenStatus::kBlocked);
  CHECK(barging.refused_by == RefusedBy::kWaitersAhead);
  h.Release(a, one);
  CHECK(h.LateText().empty());
  h.Release(a, two);
  CHECK(h.LateText() == "1 OK");
  CHECK(h.NowCalls(1) == 4);
}

TEST_CASE("a prioritized acquire that fits need not stand behind others that wait") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 4}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1);
  h.Ask(a, Wait(4), 1);
  const auto answer = h.Ask(a, Wait(3, 0, true), 2);
  REQUIRE(answer.has_value());
  CHECK(answer->status == TokenStatus::kOk);
}

TEST_CASE("a waiter is answered BLOCKED at its deadline, not before") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1, .resource_timeout_ms = 100'000}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1);
  h.Ask(a, Wait(1, 300), 1);
  h.Ask(a, Wait(1, 100), 2);
  CHECK(h.core().NextDeadline() == h.now() + 100);
  h.Pass(99);
  CHECK(h.LateText().empty());
  h.Pass(1);
  CHECK(h.LateText() == "2 BLOCKED queue_timeout");
  h.Pass(199);
  CHECK(h.LateText().empty());
  h.Pass(1);
  CHECK(h.LateText() == "1 BLOCKED queue_timeout");
  CHECK(h.core().wait_queues().size() == 0);
  CHECK(Refused(&h, RefusedBy::kQueueTimeout) == 2);
  CHECK(FlowOf(&h).counters.longest_wait_ms == 300);
}

TEST_CASE("when the one that stands in the way gives up, those behind it go") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 4, .resource_timeout_ms = 100'000}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1, 2);
  h.Ask(a, Wait(3, 100), 1);
  h.Ask(a, Wait(2, 1000), 2);
  h.Pass(100);
  CHECK(h.LateText() == "1 BLOCKED queue_timeout, 2 OK");
}

TEST_CASE("a full queue refuses at once and says so") {
  auto options = testing::HarnessOptions();
  options.limits.waiters_per_rule_max = 2;
  options.limits.waiters_per_connection_max = 3;
  options.limits.waiters_max = 4;
  CoreHarness h(options);
  h.Rules({{.flow = 1, .count = 1}, {.flow = 2, .count = 1}, {.flow = 3, .count = 1}});
  const SessionSlot a = h.Hello("a");
  for (const int64_t flow : {1, 2, 3}) h.Take(a, flow);
  const auto ask = [&](int64_t flow, uint32_t owner) {
    AcquireRequest request = Wait();
    request.flow = FlowId{flow};
    const auto answer = h.Ask(a, request, 1, owner);
    return answer.has_value() ? std::string(RefusedByName(answer->refused_by)) : "waits";
  };
  CHECK(ask(1, 7) == "waits");
  CHECK(ask(1, 7) == "waits");
  CHECK(ask(1, 8) == "queue_full");  // The rule.
  CHECK(ask(2, 7) == "waits");
  CHECK(ask(2, 7) == "queue_full");  // The connection.
  CHECK(ask(2, 8) == "waits");
  CHECK(ask(3, 8) == "queue_full");  // The server.
  CHECK(Refused(&h, RefusedBy::kQueueFull, 1) == 1);
  CHECK(Refused(&h, RefusedBy::kQueueFull, 3) == 1);
}

TEST_CASE("a full rule does not delay another") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1}, {.flow = 2, .count = 1}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1);
  h.Ask(a, Wait(), 1);
  CHECK(h.Acquire(a, 2).status == TokenStatus::kOk);
}

TEST_CASE("what no room would help is refused at once: more than the level, more than the cap") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 3, .max_per_client = 2}});
  const SessionSlot a = h.Hello("a");
  const auto level = h.Ask(a, Wait(4), 1);
  REQUIRE(level.has_value());
  CHECK(level->refused_by == RefusedBy::kOverLevel);
  const auto cap = h.Ask(a, Wait(3), 2);
  REQUIRE(cap.has_value());
  CHECK(cap->refused_by == RefusedBy::kOverLevel);
  const auto fits = h.Acquire(a, 1, 2);
  CHECK(fits.status == TokenStatus::kOk);
  AcquireRequest unknown = Wait();
  unknown.flow = FlowId{99};
  REQUIRE(h.Ask(a, unknown, 3).has_value());
}

TEST_CASE("every way of making room wakes the queue") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1, .resource_timeout_ms = 500, .client_offline_ms = 300}});
  const SessionSlot a = h.Hello("a");
  const SessionSlot b = h.Hello("b");
  SUBCASE("a reclaim by an administrator") {
    const TokenId token = h.Take(a, 1);
    h.Ask(b, Wait(), 1);
    h.Reclaim(token);
  }
  SUBCASE("a client that stays offline") {
    h.Take(a, 1);
    h.Ask(b, Wait(), 1);
    h.Goodbye(a);
    h.Pass(299);
    CHECK(h.LateText().empty());
    h.Pass(1);
  }
  SUBCASE("a hold that expires") {
    h.Take(a, 1);
    h.Ask(b, Wait(1, 5000), 1);
    h.Pass(999);
    CHECK(h.LateText().empty());
    h.Pass(200);
  }
  SUBCASE("a raised level") {
    h.Take(a, 1);
    h.Ask(b, Wait(), 1);
    h.Rules({{.flow = 1, .count = 2}});
  }
  SUBCASE("shadow mode") {
    h.Take(a, 1);
    h.Ask(b, Wait(), 1);
    h.Rules({{.flow = 1, .count = 1, .shadow = true}});
  }
  SUBCASE("a waiter ahead that goes away") {
    h.Rules({{.flow = 1, .count = 3}});
    h.Take(a, 1, 2);
    h.Ask(a, Wait(3), 9, /*owner=*/5);
    h.Ask(b, Wait(), 1);
    CHECK(h.LateText().empty());
    h.DropWaiters(5);
  }
  CHECK(h.LateText() == "1 OK");
  CHECK(FindWrongBook(h.core()).empty());
}

TEST_CASE("under AVG_LOCAL a new client makes room, and one that leaves takes it away") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1, .avg_local = true, .client_offline_ms = 100'000}});
  const SessionSlot a = h.Hello("a");
  const SessionSlot b = h.Hello("b");
  h.Take(a, 1, 2);
  h.Ask(a, Wait(), 1);
  const SessionSlot c = h.Hello("c");
  CHECK(h.LateText() == "1 OK");
  CHECK(h.NowCalls(1) == 3);
  h.Goodbye(c);
  h.Goodbye(b);
  const auto answer = h.Acquire(a, 1);
  CHECK(answer.level == 1);
  CHECK(answer.now_calls == 3);
  CHECK(answer.status == TokenStatus::kBlocked);
}

TEST_CASE("a client that leaves takes its waiters and its share of the level in one step") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1, .avg_local = true, .client_offline_ms = 100'000}});
  const SessionSlot a = h.Hello("a");
  const SessionSlot b = h.Hello("b");
  const SessionSlot c = h.Hello("c");
  h.Take(a, 1);
  h.Take(b, 1);
  REQUIRE_FALSE(h.Ask(c, Wait(2), 1, /*owner=*/3).has_value());
  REQUIRE_FALSE(h.Ask(b, Wait(1), 2, /*owner=*/2).has_value());
  h.Goodbye(c, /*owner=*/3);
  CHECK(h.LateText().empty());
  CHECK(h.NowCalls(1) == 2);
  CHECK(h.core().wait_queues().size() == 1);
}

TEST_CASE("a grant that brings a session to its cap lets those behind its waiters go") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 10, .max_per_client = 5}});
  const SessionSlot u = h.Hello("u");
  const SessionSlot v = h.Hello("v");
  const SessionSlot s = h.Hello("s");
  const SessionSlot n = h.Hello("n");
  h.Take(u, 1, 5);
  h.Take(v, 1);
  h.Take(s, 1);
  REQUIRE_FALSE(h.Ask(s, Wait(4), 1).has_value());
  REQUIRE_FALSE(h.Ask(n, Wait(1), 2).has_value());
  const auto granted = h.Ask(s, Wait(1, 1000, /*prioritized=*/true), 3);
  REQUIRE(granted.has_value());
  CHECK(granted->status == TokenStatus::kOk);
  CHECK(granted->now_calls == 8);
  CHECK(h.LateText() == "2 OK");
}

// A level that falls below what the first waiter asks for must not let it block all others.
TEST_CASE("a waiter that has come to ask for more than the level is passed over") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 4, .resource_timeout_ms = 100'000}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1, 2);
  h.Ask(a, Wait(4, 500), 1);
  h.Ask(a, Wait(1, 5000), 2);
  h.Rules({{.flow = 1, .count = 3, .resource_timeout_ms = 100'000}});
  CHECK(h.LateText() == "2 OK");
  h.Rules({{.flow = 1, .count = 6, .resource_timeout_ms = 100'000}});
  CHECK(h.LateText().empty());
  h.Release(a, token);
  CHECK(h.LateText() == "1 OK");
}

TEST_CASE("a waiter at its own cap is passed over until it releases") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 3, .max_per_client = 2}});
  const SessionSlot a = h.Hello("a");
  const SessionSlot b = h.Hello("b");
  const TokenId mine = h.Take(a, 1, 2);
  const TokenId theirs = h.Take(b, 1);
  h.Ask(a, Wait(1), 1);
  h.Ask(b, Wait(1), 2);
  h.Release(b, theirs);
  CHECK(h.LateText() == "2 OK");
  CHECK(h.Acquire(a, 1).refused_by == RefusedBy::kLevel);
  h.Release(a, mine);
  CHECK(h.LateText() == "1 OK");
}

TEST_CASE("waiters of a removed rule are told that there is none") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1);
  h.Ask(a, Wait(), 1);
  h.Ask(a, Wait(1, 1000, true), 2);
  h.Rules({});
  CHECK(h.LateText() == "2 NO_RULE_EXISTS, 1 NO_RULE_EXISTS");
  CHECK(h.Release(a, token) == TokenStatus::kReleaseOk);
  h.Rules({{.flow = 1, .count = 1}}, "heir");
  CHECK(h.LateText().empty());
  CHECK(h.Acquire(a, 1).status == TokenStatus::kOk);
}

TEST_CASE("acquireRefuseStrategy 3 queues prioritized requests for maxQueueingTimeMs") {
  CoreHarness h;
  h.Rules({{.flow = 1,
            .count = 1,
            .resource_timeout_ms = 100'000,
            .refuse_strategy = 3,
            .max_queueing_ms = 200}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1);
  AcquireRequest request{.flow = FlowId{1}, .count = 1, .prioritized = true};
  CHECK_FALSE(h.Ask(a, request, 1).has_value());
  h.Pass(200);
  CHECK(h.LateText() == "1 BLOCKED queue_timeout");
  request.wait_ms = 0;  // What the request says itself counts more.
  CHECK(h.Ask(a, request, 2).has_value());
  request.wait_ms.reset();
  request.prioritized = false;
  CHECK(h.Ask(a, request, 3).has_value());
  for (const int strategy : {0, 1, 2}) {
    h.Rules({{.flow = 1, .count = 1, .resource_timeout_ms = 100'000, .refuse_strategy = strategy}});
    request.prioritized = true;
    CHECK(h.Ask(a, request, 4).has_value());
  }
}

TEST_CASE("nobody waits in a server that ends") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1);
  h.Ask(a, Wait(), 1);
  h.core().CloseQueues(h.step());
  CHECK(h.LateText() == "1 NOT_AVAILABLE");
  REQUIRE(h.Ask(a, Wait(), 2).has_value());
  h.Release(a, token);
  CHECK(h.Acquire(a, 1).status == TokenStatus::kOk);
}

TEST_CASE("waiters are not in the ledger: a restart forgets them and nothing else") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1, .client_offline_ms = 60'000}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1);
  h.Ask(a, Wait(), 1);
  h.Restart();
  CHECK(h.core().wait_queues().size() == 0);
  const SessionSlot back = h.Hello("a");
  CHECK(h.Release(back, token) == TokenStatus::kReleaseOk);
  CHECK(h.LateText().empty());
}

// Waiters at the cap of their session are set aside, and come back one by one.

}  // namespace
}  // namespace nowcalls::core
