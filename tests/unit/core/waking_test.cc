// Acquires that wait for more than one call may do: whom a call lets go, and whom it leaves to
// OnTime.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/core_harness.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;
using testing::FindWrongBook;

AcquireRequest Wait(int64_t count = 1, int64_t flow = 1) {
  return {.flow = FlowId{flow}, .count = count, .wait_ms = 1000};
}

CoreOptions WithGrants(uint32_t grants_per_call_max) {
  CoreOptions options = testing::HarnessOptions();
  options.grants_per_call_max = grants_per_call_max;
  return options;
}

TEST_CASE("a call lets so many go, and OnTime the others, each flow in its order") {
  CoreHarness h(WithGrants(3));
  h.Rules({{.flow = 1, .count = 4, .avg_local = true, .client_offline_ms = 100'000},
           {.flow = 2, .count = 4, .avg_local = true, .client_offline_ms = 100'000}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1, 4);
  const TokenId token = h.Take(a, 2, 4);
  for (const uint32_t tag : {11, 12, 13, 14, 15}) h.Ask(a, Wait(), tag);
  for (const uint32_t tag : {21, 22, 23}) h.Ask(a, Wait(1, 2), tag);
  const SessionSlot b = h.Hello("b");
  CHECK(h.LateText() == "11 OK, 12 OK, 13 OK");
  CHECK(h.core().NextDeadline() <= h.now());
  h.Release(a, token);  // Another call does not go on with them, nor with its own.
  CHECK(h.LateText().empty());
  // There is room, but not for those who came later.
  const auto refused = h.Acquire(b, 1);
  CHECK(refused.status == TokenStatus::kBlocked);
  CHECK(refused.refused_by == RefusedBy::kWaitersAhead);
  CHECK(h.Acquire(b, 2).refused_by == RefusedBy::kWaitersAhead);
  REQUIRE_FALSE(h.Ask(b, Wait(), 16).has_value());
  h.core().OnTime(h.step());
  CHECK(h.LateText() == "14 OK, 21 OK");
  h.DoDue();
  CHECK(h.LateText() == "22 OK, 23 OK");
  CHECK(h.core().NextDeadline() > h.now());
  CHECK(h.core().wait_queues().size() == 2);
  CHECK(h.NowCalls(1) == 8);
}

TEST_CASE("a keep behind the longest hold gives the room of its token to the first who waits") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1, .client_offline_ms = 100'000, .max_hold_ms = 1000}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1);
  REQUIRE_FALSE(h.Ask(h.Hello("b"), {.flow = FlowId{1}, .wait_ms = 6000}, 7).has_value());
  h.Sleep(1000);
  CHECK(h.Keep(a, token).status == TokenStatus::kAlreadyRelease);
  CHECK(h.LateText() == "7 OK");
}

TEST_CASE("the flows of a namespace that has more sessions do not stand before all others") {
  CoreHarness h(WithGrants(2));
  h.Rules({{.flow = 1, .count = 1, .client_offline_ms = 100'000},
           {.flow = 11, .count = 1, .avg_local = true, .client_offline_ms = 100'000},
           {.flow = 12, .count = 1, .avg_local = true, .client_offline_ms = 100'000},
           {.flow = 13, .count = 1, .avg_local = true, .client_offline_ms = 100'000},
           {.flow = 14, .count = 1, .avg_local = true, .client_offline_ms = 100'000},
           {.flow = 15, .count = 1, .avg_local = true, .client_offline_ms = 100'000},
           {.flow = 16, .count = 1, .avg_local = true, .client_offline_ms = 100'000}});
  const SessionSlot a = h.Hello("a");
  const auto wait = [&](int64_t flow) {
    REQUIRE_FALSE(h.Ask(a, Wait(1, flow), static_cast<uint32_t>(flow)).has_value());
  };
  const TokenId token = h.Take(a, 1);
  wait(1);
  for (const int64_t flow : {11, 12, 13, 14, 15, 16}) {
    h.Take(a, flow);
    wait(flow);
  }
  h.Hello("b");
  CHECK(h.LateText() == "11 OK, 12 OK");
  h.Release(a, token);
  CHECK(h.LateText().empty());
  h.core().OnTime(h.step());
  CHECK(h.LateText() == "13 OK, 14 OK");
  h.core().OnTime(h.step());
  CHECK(h.LateText() == "1 OK, 15 OK");
  h.DoDue();
  CHECK(h.LateText() == "16 OK");
  CHECK(h.core().NextDeadline() > h.now());
}

TEST_CASE("sessions that come while flows are looked at for others are not forgotten") {
  CoreHarness h(WithGrants(2));
  std::vector<testing::RuleOptions> rules;
  for (int64_t flow = 1; flow <= 5; ++flow) {
    rules.push_back({.flow = flow, .count = 2, .avg_local = true, .client_offline_ms = 100'000});
  }
  h.Rules(rules);
  const SessionSlot a = h.Hello("a");
  const SessionSlot gone = h.Hello("gone");
  for (int64_t flow = 1; flow <= 5; ++flow) h.Take(a, flow, 4);
  h.Goodbye(gone);
  for (int64_t flow = 1; flow <= 5; ++flow) {
    REQUIRE_FALSE(h.Ask(a, Wait(2, flow), static_cast<uint32_t>(flow)).has_value());
  }
  h.Hello("b");  // Flows 1 and 2 are looked at: their level is what is out.
  h.Hello("c");
  CHECK(h.LateText().empty());
  for (const std::string_view late : {"3 OK, 4 OK", "5 OK, 1 OK", "2 OK"}) {
    h.core().OnTime(h.step());
    CHECK(h.LateText() == late);
  }
  h.DoDue();
  CHECK(h.core().NextDeadline() > h.now());
}

TEST_CASE("the greatest flow id there may be is looked at once as well") {
  CoreHarness h;
  h.Rules({{.flow = INT64_MAX, .count = 1, .avg_local = true, .client_offline_ms = 100'000}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, INT64_MAX);
  REQUIRE_FALSE(h.Ask(a, Wait(1, INT64_MAX), 1).has_value());
  REQUIRE_FALSE(h.Ask(a, Wait(1, INT64_MAX), 2).has_value());
  h.Hello("b");
  CHECK(h.LateText() == "1 OK");
  CHECK(h.core().NextDeadline() > h.now());
}

TEST_CASE("a call that looks at many waiters leaves those that they let go to OnTime") {
  CoreHarness h(WithGrants(10));
  h.Rules({{.flow = 1, .count = 1000, .client_offline_ms = 100'000, .max_per_client = 100}});
  const SessionSlot a = h.Hello("a");
  const SessionSlot b = h.Hello("b");
  const TokenId most = h.Take(a, 1, 40);
  h.Take(a, 1, 60);
  // Each time that one goes, all that are too large are looked at.
  uint32_t tag = 0;
  for (int i = 0; i < 20; ++i) REQUIRE_FALSE(h.Ask(a, Wait(50), ++tag));
  for (int i = 0; i < 4; ++i) REQUIRE_FALSE(h.Ask(a, Wait(10), ++tag));
  h.Take(b, 1);
  h.Release(a, most);
  CHECK(h.LateText() == "21 OK");
  CHECK(h.core().NextDeadline() <= h.now());
  h.DoDue();
  CHECK(h.LateText() == "22 OK, 23 OK, 24 OK");
}

TEST_CASE("a namespace that goes while its flows are to be looked at leaves nothing behind") {
  CoreHarness h(WithGrants(1));
  h.Rules({{.flow = 1, .count = 1, .avg_local = true}, {.flow = 2, .count = 1, .avg_local = true}});
  const SessionSlot a = h.Hello("a");
  for (const int64_t flow : {1, 2}) {
    h.Take(a, flow);
    REQUIRE_FALSE(h.Ask(a, Wait(1, flow), static_cast<uint32_t>(flow)).has_value());
  }
  const SessionSlot b = h.Hello("b");
  CHECK(h.LateText() == "1 OK");
  h.Rules({});
  CHECK(h.LateText() == "2 NO_RULE_EXISTS");
  h.Goodbye(b);
  h.Goodbye(a);
  h.DoDue();
  CHECK(h.core().NextDeadline() > h.now());
}

TEST_CASE("those who were set aside are not overtaken while their turn is still to come") {
  CoreHarness h(WithGrants(1));
  h.Rules({{.flow = 1, .count = 1, .avg_local = true, .client_offline_ms = 100'000},
           {.flow = 2, .count = 2, .avg_local = true, .client_offline_ms = 100'000}});
  const SessionSlot a = h.Hello("a");
  const SessionSlot b = h.Hello("b");
  const TokenId token = h.Take(a, 2, 2);
  REQUIRE_FALSE(h.Ask(a, Wait(4, 2), 1).has_value());
  h.Take(a, 1, 2);
  for (const uint32_t tag : {2, 3}) h.Ask(a, Wait(), tag);
  h.Goodbye(b);  // Now 4 is more than the level of flow 2.
  h.DoDue();
  h.Release(a, token);
  CHECK(h.LateText().empty());
  h.Hello("b");  // A look at flow 1 is all that the call does.
  CHECK(h.LateText().empty());
  CHECK(h.core().NextDeadline() <= h.now());
  CHECK(h.Acquire(a, 2).refused_by == RefusedBy::kWaitersAhead);
  h.DoDue();
  CHECK(h.LateText() == "1 OK");
}

TEST_CASE("a wait that ends while its turn is to come is answered once") {
  CoreHarness h(WithGrants(1));
  h.Rules({{.flow = 1, .count = 3}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1, 3);
  for (const uint32_t tag : {1, 2, 3, 4}) {
    AcquireRequest request = Wait();
    request.request_id = tag;
    REQUIRE_FALSE(h.Ask(a, request, tag, /*owner=*/tag).has_value());
  }
  h.Release(a, token);
  CHECK(h.LateText() == "1 OK");
  CHECK(h.Cancel(a, 2) == TokenStatus::kReleaseOk);
  CHECK(h.LateText() == "2 BLOCKED cancelled");
  h.DropWaiters(3);
  SUBCASE("granted at last") {
    h.DoDue();
    CHECK(h.LateText() == "4 OK");
  }
  SUBCASE("when the server ends") {
    h.core().CloseQueues(h.step());
    CHECK(h.LateText() == "4 NOT_AVAILABLE");
    h.DoDue();
    CHECK(h.LateText().empty());
  }
  SUBCASE("when the rule is removed") {
    h.Rules({});
    CHECK(h.LateText() == "4 NO_RULE_EXISTS");
    h.DoDue();
    CHECK(h.LateText().empty());
  }
  CHECK(h.core().wait_queues().size() == 0);
  CHECK(FindWrongBook(h.core()).empty());
}

}  // namespace
}  // namespace nowcalls::core
