// Waiters that no room that others make would help: who comes back when, and how often they are
// looked at.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/core_harness.h"
#include "unit/core/waiting_calls.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;

TEST_CASE("when the first of a session's waiters gives up, the next one is thought of") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 3, .resource_timeout_ms = 100'000, .max_per_client = 2}});
  const SessionSlot s = h.Hello("s");
  const TokenId first = h.Take(s, 1);
  h.Take(s, 1);
  h.Ask(s, Wait(1, 500), 1);
  h.Ask(s, Wait(1, 5000), 2);
  const SessionSlot u = h.Hello("u");
  h.Take(u, 1);  // Passes over both.
  const SessionSlot n = h.Hello("n");
  h.Ask(n, Wait(2, 1000, /*prioritized=*/true), 3);
  h.Release(s, first);
  CHECK(h.LateText().empty());  // There is room for one, and the prioritized one needs two.
  h.Pass(500);
  CHECK(h.LateText() == "1 BLOCKED queue_timeout");
  h.Pass(500);
  CHECK(h.LateText() == "3 BLOCKED queue_timeout, 2 OK");
}

TEST_CASE("when a session's first waiter asks for too much again, a smaller one is thought of") {
  CoreHarness h;
  h.Rules({TwoEach(/*max_per_client=*/3)});
  const SessionSlot s = h.Hello("s");
  const SessionSlot u = h.Hello("u");
  const SessionSlot x = h.Hello("x");
  const TokenId of_s = h.Take(s, 1, 3);
  const TokenId of_u = h.Take(u, 1, 3);
  h.Ask(s, Wait(3, 5000), 1);
  h.Ask(s, Wait(2, 5000), 2);
  h.Goodbye(x);  // The level is 4: both are looked at, and are at the cap.
  h.Release(s, of_s);
  CHECK(h.LateText().empty());  // There is room for one.
  CHECK(h.Ask(s, Wait(1, 0, /*prioritized=*/true), 3)->status == TokenStatus::kOk);
  h.Release(u, of_u);
  CHECK(h.LateText() == "2 OK");
  CHECK(h.NowCalls(1) == 3);
}

TEST_CASE(
    "when a session's first waiter asks for more than the level, a smaller one is thought of") {
  CoreHarness h;
  h.Rules({TwoEach(/*max_per_client=*/5)});
  const SessionSlot s = h.Hello("s");
  const SessionSlot u = h.Hello("u");
  const SessionSlot x = h.Hello("x");
  const TokenId of_s = h.Take(s, 1, 5);
  h.Ask(s, Wait(4, 5000), 1);
  h.Ask(s, Wait(1, 5000), 2);
  h.Release(u, h.Take(u, 1));  // Both are looked at, and are at the cap.
  h.Goodbye(u);
  h.Goodbye(x);
  h.Release(s, of_s);  // The first one fits the cap, but the level is 2 now.
  CHECK(h.LateText() == "2 OK");
  CHECK(h.NowCalls(1) == 1);
  CHECK(h.core().wait_queues().size() == 1);
}

TEST_CASE("a waiter that becomes too large in line has its session looked at, before others go") {
  CoreHarness h;
  h.Rules({TwoEach(/*max_per_client=*/5)});
  const SessionSlot s = h.Hello("s");
  const SessionSlot t = h.Hello("t");
  const SessionSlot u = h.Hello("u");
  std::vector<SessionSlot> others;
  for (int i = 0; i < 8; ++i) others.push_back(h.Hello("x" + std::to_string(i)));
  const TokenId of_s = h.Take(s, 1, 5);
  const TokenId of_u = h.Take(u, 1, 2);
  h.Take(u, 1, 3);
  REQUIRE_FALSE(h.Ask(s, Wait(5, 50'000), 1).has_value());
  REQUIRE_FALSE(h.Ask(s, Wait(1, 50'000), 2).has_value());
  h.Release(others[0], h.Take(others[0], 1));  // Both are set aside at the cap.
  for (int i = 0; i < 7; ++i) h.Goodbye(others[i]);
  h.Release(s, of_s);  // The one that asks for 5 is first in line; the level is 8, 5 are out.
  REQUIRE_FALSE(h.Ask(t, Wait(1, 50'000), 3).has_value());
  CHECK(h.LateText() == "");
  h.Goodbye(others[7]);
  h.Reclaim(of_u);
  CHECK(h.LateText() == "");
  h.Goodbye(u);  // The level is 4, 3 are out.
  CHECK(h.LateText() == "2 OK");
}

TEST_CASE("waiters of a session that all ask for more than the level are looked at once") {
  for (const bool some_stay_at_cap : {false, true}) {
    CAPTURE(some_stay_at_cap);
    CoreHarness h;
    h.Rules({{.flow = 1,
              .count = 100,
              .avg_local = true,
              .resource_timeout_ms = 100'000,
              .client_offline_ms = 100'000,
              .max_per_client = 1000}});
    const SessionSlot s = h.Hello("s");
    std::vector<SessionSlot> others;
    for (int i = 0; i < 19; ++i) others.push_back(h.Hello("c" + std::to_string(i)));
    const TokenId some = h.Take(s, 1, 500);
    h.Take(s, 1, 500);
    for (uint32_t i = 0; i < 400; ++i) {
      const int count = some_stay_at_cap && i < 200 ? 600 : 150;
      REQUIRE_FALSE(h.Ask(s, Wait(count, 60'000), i).has_value());
    }
    REQUIRE_FALSE(h.Ask(s, Wait(7, 60'000), 400).has_value());
    h.Release(others[0], h.Take(others[0], 1));  // All are set aside at the cap.
    for (const SessionSlot other : others) h.Goodbye(other);
    const uint64_t looks = h.core().wait_queues().looks();
    h.Release(s, some);  // Only the last one fits the cap and the level.
    CHECK(h.core().wait_queues().looks() - looks <= 410);
    CHECK(h.core().wait_queues().size() == 401);
    h.Rules({{.flow = 1, .count = 1007, .client_offline_ms = 100'000, .max_per_client = 1000}});
    CHECK(h.NowCalls(1) == 500 + 3 * 150 + 7);
  }
}

TEST_CASE("waiters at a share of the level are looked at when it changes, not with every call") {
  CoreHarness h;
  h.Rules({{.flow = 1,
            .count = 2,
            .avg_local = true,
            .resource_timeout_ms = 100'000,
            .client_offline_ms = 100'000,
            .max_per_client_percent = 1}});
  constexpr uint32_t kSessions = 50;
  for (uint32_t i = 0; i < kSessions; ++i) {
    const SessionSlot session = h.Hello("s" + std::to_string(i));
    h.Take(session, 1);
    REQUIRE_FALSE(h.Ask(session, Wait(1, 60'000), i, /*owner=*/i).has_value());
  }
  const SessionSlot other = h.Hello("other");
  const uint64_t looks = h.core().wait_queues().looks();
  for (int i = 0; i < 100; ++i) h.Release(other, h.Take(other, 1));
  CHECK(h.core().wait_queues().looks() - looks < kSessions);
  REQUIRE(h.LateText().empty());
  // With 100 sessions a share is two calls.
  for (uint32_t i = 0; i + 1 < kSessions; ++i) h.Hello("t" + std::to_string(i));
  CHECK(h.NowCalls(1) == 2 * kSessions);
  CHECK(h.core().wait_queues().size() == 0);
}

TEST_CASE("of those at their cap the first comes back that fits, whatever their counts") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 100, .client_offline_ms = 100'000, .max_per_client = 12}});
  const SessionSlot a = h.Hello("a");
  std::vector<TokenId> ones;
  for (int i = 0; i < 12; ++i) ones.push_back(h.Take(a, 1));
  uint32_t tag = 0;
  for (const int64_t count : {9, 5, 3, 4, 3, 1}) REQUIRE_FALSE(h.Ask(a, Wait(count), ++tag));
  const auto release = [&](int times) {
    for (; times > 0; --times) {
      h.Release(a, ones.back());
      ones.pop_back();
    }
    return h.LateText();
  };
  CHECK(release(1) == "6 OK");
  CHECK(release(2).empty());
  CHECK(release(1) == "3 OK");
  CHECK(release(3) == "5 OK");
  CHECK(release(4) == "4 OK");
}

TEST_CASE("waiters that all fit again are not looked at once more for each that goes") {
  CoreHarness h;
  h.Rules(
      {{.flow = 1, .count = 1'000'000, .client_offline_ms = 100'000, .max_per_client = 300'000}});
  const SessionSlot a = h.Hello("a");
  const SessionSlot b = h.Hello("b");
  const TokenId all = h.Take(a, 1, 300'000);
  for (uint32_t i = 1; i <= 500; ++i) REQUIRE_FALSE(h.Ask(a, Wait(i), i));
  h.Take(b, 1);  // They are set aside.
  const uint64_t looks = h.core().wait_queues().looks();
  h.Release(a, all);
  h.DoDue();
  CHECK(h.core().wait_queues().looks() - looks <= 2 * 500);
  CHECK(h.core().wait_queues().size() == 0);
}

TEST_CASE("a release that makes room for none of its session's waiters looks at none") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 2000, .client_offline_ms = 100'000, .max_per_client = 1000}});
  const SessionSlot a = h.Hello("a");
  std::vector<TokenId> ones;
  for (int i = 0; i < 1000; ++i) ones.push_back(h.Take(a, 1));
  for (uint32_t i = 0; i < 300; ++i) REQUIRE_FALSE(h.Ask(a, Wait(900), i));
  h.Release(a, ones[100]);  // All of them are at the cap.
  const uint64_t looks = h.core().wait_queues().looks();
  for (size_t i = 0; i < 100; ++i) h.Release(a, ones[i]);
  CHECK(h.core().wait_queues().looks() - looks == 100);
  CHECK(h.LateText().empty());
}

TEST_CASE("however many waiters of a session go at once, the others are looked at once") {
  enum class End { kDrain, kServer, kConnection, kTime, kRelease };
  for (const End end : {End::kDrain, End::kServer, End::kConnection, End::kTime, End::kRelease}) {
    CAPTURE(static_cast<int>(end));
    CoreHarness h;
    h.Rules({{.flow = 1, .count = 1001, .client_offline_ms = 100'000, .max_per_client = 1000}});
    const SessionSlot a = h.Hello("a");
    const SessionSlot b = h.Hello("b");
    h.Take(a, 1, 900);
    std::vector<TokenId> ones;
    for (int i = 0; i < 100; ++i) ones.push_back(h.Take(a, 1));
    const TokenId last = h.Take(b, 1);
    for (uint32_t i = 0; i < 300; ++i) {
      REQUIRE_FALSE(h.Ask(a, Wait(i < 200 ? 500 : 1), i, /*owner=*/i / 100).has_value());
    }
    // All are set aside. Then those of the third hundred would fit, were there room.
    REQUIRE_FALSE(h.Ask(b, Wait(999, 60'000), 300, 4).has_value());
    h.Release(b, last);
    REQUIRE(h.LateText().empty());
    REQUIRE(h.Ask(b, Wait(1, 60'000, /*prioritized=*/true), 301, 4).has_value());
    REQUIRE_FALSE(h.Ask(b, Wait(1, 60'000, /*prioritized=*/true), 302, 4).has_value());
    h.Release(a, ones[0]);
    CHECK(h.LateText() == "302 OK");
    REQUIRE(h.NowCalls(1) == 1001);
    const uint64_t looks = h.core().wait_queues().looks();
    switch (end) {
      case End::kDrain: REQUIRE(h.core().Drain(h.step(), FlowId{1}, true, {}).ok()); break;
      case End::kServer: h.core().CloseQueues(h.step()); break;
      case End::kConnection: h.core().DropWaiters(h.step(), /*owner=*/2); break;
      case End::kTime: h.Pass(1000); break;
      case End::kRelease: REQUIRE(h.core().ReclaimFlow(h.step(), FlowId{1}, 50, {}).ok()); break;
    }
    const uint64_t looks_max = end == End::kRelease ? 1500 : 301;  // Some are granted then.
    CHECK(h.core().wait_queues().looks() - looks <= looks_max);
  }
}

}  // namespace
}  // namespace nowcalls::core
