// Restart grace: clients get time to come back before what they hold is taken.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/books.h"
#include "support/core_harness.h"
#include "support/only_flow.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;
using testing::ReadLedger;
using testing::RuleOptions;

TEST_CASE("an old token that expired is spared until ready + its hold time, a new one is not") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 2000, .client_offline_ms = 600'000},
           {.flow = 2, .resource_timeout_ms = 500, .client_offline_ms = 600'000}});
  const SessionSlot a = h.Hello("a");
  const TokenId old_token = h.Take(a, 1);
  h.Restart(/*down_ms=*/60'000);
  REQUIRE(h.Hello("a") == h.core().books().sessions().by_id().begin()->second);
  const TokenId new_token = h.Take(h.Hello("a"), 2);
  h.Pass(3999);
  CHECK(h.IsLive(old_token));
  CHECK_FALSE(h.IsLive(new_token));
  h.Pass(200);
  CHECK_FALSE(h.IsLive(old_token));
  CHECK(h.Ended(1, EndReason::kResourceTimeout) == 1);
}

TEST_CASE("an old token is spared for restart_grace at most") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 100'000, .client_offline_ms = 600'000}});
  h.Take(h.Hello("a"), 1);
  h.Restart(/*down_ms=*/300'000);
  h.Hello("a");
  h.Pass(9999);
  CHECK(h.NowCalls(1) == 1);
  h.Pass(200);
  CHECK(h.NowCalls(1) == 0);
}

TEST_CASE("restart grace ends with maxHoldMs, also when that was over before the start") {
  CoreHarness h;
  h.Rules({{.flow = 1, .client_offline_ms = 600'000, .max_hold_ms = 6000},
           {.flow = 2, .client_offline_ms = 600'000, .max_hold_ms = 5000}});
  const SessionSlot a = h.Hello("a");
  const TokenId shorter = h.Take(a, 1);  // To be kept for 4000; then it has 2000 of grace.
  const TokenId over = h.Take(a, 2);
  h.Restart(/*down_ms=*/5000);
  h.Hello("a");
  h.Pass(200);
  CHECK_FALSE(h.IsLive(over));
  CHECK(h.Ended(2, EndReason::kResourceTimeout) == 1);
  h.Pass(799);
  CHECK(h.IsLive(shorter));
  h.Pass(200);
  CHECK_FALSE(h.IsLive(shorter));
}

TEST_CASE("maxHoldMs survives a restart: it counts from the grant") {
  CoreHarness h;
  h.Rules({{.flow = 1, .client_offline_ms = 600'000, .max_hold_ms = 10'000}});
  const TokenId token = h.Take(h.Hello("a"), 1);
  h.Restart(/*down_ms=*/1000);
  const SessionSlot a = h.Hello("a");
  for (int i = 0; i < 4; ++i) {
    h.Pass(2000);
    CHECK(h.Keep(a, token).hold_ms == std::min(4000, 7000 - 2000 * i));
  }
  h.Pass(1200);
  CHECK_FALSE(h.IsLive(token));
}

TEST_CASE("an old token with a later deadline keeps that deadline") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 30'000, .client_offline_ms = 600'000}});
  h.Take(h.Hello("a"), 1);
  h.Restart(/*down_ms=*/1000);
  h.Hello("a");
  h.Pass(58'999);
  CHECK(h.NowCalls(1) == 1);
  h.Pass(200);
  CHECK(h.NowCalls(1) == 0);
}

TEST_CASE("a spared token can be kept and released, and is spared once only") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 2000, .client_offline_ms = 600'000}});
  const SessionSlot a = h.Hello("a");
  const TokenId kept = h.Take(a, 1);
  const TokenId released = h.Take(a, 1);
  h.Restart(60'000);
  const SessionSlot back = h.Hello("a");
  h.Pass(1000);
  CHECK(h.Release(back, released) == TokenStatus::kReleaseOk);
  CHECK(h.Keep(back, kept).hold_ms == 4000);
  h.Pass(3900);
  CHECK(h.IsLive(kept));
  h.Pass(300);
  CHECK_FALSE(h.IsLive(kept));
}

TEST_CASE("spared tokens are told in the log and reclaimed after all") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 2000, .client_offline_ms = 600'000}});
  const SessionSlot a = h.Hello("a");
  for (int i = 0; i < 3; ++i) h.Take(a, 1);
  h.Restart(60'000);
  h.Hello("a");
  h.Pass(1000);
  CHECK(h.NoticesText() == "sweep: reclaimed 0 expired tokens, spared 3\n");
  h.Pass(4000);
  CHECK(h.NoticesText() == "sweep: reclaimed 3 expired tokens\n");
}

TEST_CASE("a second restart gives the grace anew") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 2000, .client_offline_ms = 600'000}});
  const TokenId token = h.Take(h.Hello("a"), 1);
  for (int i = 0; i < 3; ++i) {
    h.Restart(60'000);
    h.Hello("a");
    h.Pass(3900);
    CHECK(h.IsLive(token));
  }
}

TEST_CASE(
    "absent clients have restart_grace to come back, or clientOfflineTime if that is longer") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 600'000, .client_offline_ms = 2000},
           {.flow = 2, .resource_timeout_ms = 600'000, .client_offline_ms = 15'000}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1);
  h.Take(a, 2);
  h.Restart(100'000);
  h.Pass(9999);
  CHECK(h.NowCalls(1) == 1);
  h.Pass(1);
  CHECK(h.NowCalls(1) == 0);
  CHECK(h.NowCalls(2) == 1);
  h.Pass(4999);
  CHECK(h.NowCalls(2) == 1);
  h.Pass(1);
  CHECK(h.NowCalls(2) == 0);
  CHECK(ReadLedger(&h.store()).sessions.empty());
}

TEST_CASE("a client that came back after the restart follows clientOfflineTime alone") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 600'000, .client_offline_ms = 2000}});
  const TokenId token = h.Take(h.Hello("a"), 1);
  h.Restart();
  h.Pass(9000);
  const SessionSlot back = h.Hello("a");
  CHECK(h.core().books().sessions().at(back).tokens.size == 1);
  h.Pass(20'000);
  CHECK(h.IsLive(token));
  h.Goodbye(back);
  h.Pass(2000);
  CHECK_FALSE(h.IsLive(token));
}

TEST_CASE("sessions that the ledger holds without tokens are closed after a restart") {
  CoreHarness h;
  h.Rules({{.flow = 1}});
  for (const char* name : {"a", "b"}) {
    const SessionSlot slot = h.Hello(name);
    h.Release(slot, h.Take(slot, 1));
  }
  const SessionSlot unnamed = h.HelloUnnamed("@127.0.0.1:1");
  h.Release(unnamed, h.Take(unnamed, 1));
  REQUIRE(ReadLedger(&h.store()).sessions.size() == 3);
  h.Restart();
  REQUIRE(h.core().books().sessions().size() == 3);
  const SessionSlot back = h.Hello("a");
  h.Pass(0);
  const auto content = ReadLedger(&h.store());
  REQUIRE(content.sessions.size() == 1);
  CHECK(content.sessions[0].client_id == "a");
  CHECK(h.core().books().sessions().size() == 1);
  h.Release(back, h.Take(back, 1));
  h.Goodbye(back);
  CHECK(ReadLedger(&h.store()).sessions.empty());
}

TEST_CASE("tokens of a rule removed before the restart can be kept, released and swept") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 3000, .client_offline_ms = 600'000}});
  const SessionSlot a = h.Hello("a");
  const TokenId kept = h.Take(a, 1);
  const TokenId released = h.Take(a, 1);
  h.Rules({});
  h.Restart(100);
  const SessionSlot back = h.Hello("a");
  CHECK(h.Release(back, released) == TokenStatus::kReleaseOk);
  CHECK(h.Keep(back, kept).hold_ms == 6000);
  h.Pass(6200);
  CHECK(h.NowCalls(1) == 0);
  CHECK(h.core().flows().size() == 0);
}

TEST_CASE("a rule removed before the restart still says how long its tokens may be held") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 3000, .client_offline_ms = 600'000}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1);
  for (int i = 0; i < 10; ++i) {
    h.Pass(3000);
    h.Keep(a, token);
  }
  h.Rules({});
  h.Restart(100);
  const Flow& flow = h.core().flows().at(OnlyFlow(h.core().flows(), 1));
  CHECK(flow.removed);
  CHECK(flow.rule->resource == "r1");
  CHECK(flow.client_offline_time_ms == 600'000);
  CHECK(h.core().flows().rules() == 0);
  const SessionSlot back = h.Hello("a");
  CHECK(h.Acquire(back, 1).status == TokenStatus::kNoRuleExists);
  for (int i = 0; i < 10; ++i) {
    h.Pass(3000);
    CHECK(h.Keep(back, token).hold_ms == 6000);
  }
  CHECK(ReadLedger(&h.store()).rules.size() == 1);
  h.Pass(6200);
  CHECK(h.NowCalls(1) == 0);
  CHECK(h.core().flows().size() == 0);
  CHECK(ReadLedger(&h.store()).rules.empty());
  h.Goodbye(back);
  CHECK(h.core().flows().namespaces() == 0);
}

// The client is away all the time.
RuleOptions PatientFor(int64_t client_offline_ms, int64_t flow = 1) {
  return {.flow = flow, .resource_timeout_ms = 3'600'000, .client_offline_ms = client_offline_ms};
}

TEST_CASE("a spared token whose rule became more patient and less so again goes by the last") {
  CoreOptions options = testing::HarnessOptions();
  options.restart_grace_ms = 3000;
  CoreHarness h(options);
  h.Rules({PatientFor(1000)});
  h.Take(h.Hello("a"), 1);
  h.Restart();
  h.Pass(1500);  // Asked at 1 s, spared until 3 s.
  h.Rules({PatientFor(600'000)});
  h.Pass(2500);
  CHECK(h.NowCalls(1) == 1);
  SUBCASE("at once, when it would have been due by then") {
    h.Rules({PatientFor(1000)});
    h.Pass(0);
    CHECK(h.NowCalls(1) == 0);
    CHECK(h.core().books().sessions().size() == 0);
  }
  SUBCASE("at its time, when that is to come") {
    h.Rules({PatientFor(5000)});
    h.Pass(999);
    CHECK(h.NowCalls(1) == 1);
    h.Pass(1);
    CHECK(h.NowCalls(1) == 0);
  }
  SUBCASE("when it became more patient twice") {
    h.Rules({PatientFor(900'000)});
    h.Pass(600'000 - 4000);
    h.Rules({PatientFor(700'000)});
    h.Pass(99'999);
    CHECK(h.NowCalls(1) == 1);
    h.Pass(1);
    CHECK(h.NowCalls(1) == 0);
  }
  SUBCASE("and not by another rule's") {
    h.Rules({PatientFor(600'000), PatientFor(1000, /*flow=*/2)});
    h.Take(h.Hello("b"), 2);
    h.Rules({PatientFor(600'000), PatientFor(500, 2)});
    h.Pass(595'999);
    CHECK(h.NowCalls(1) == 1);
    h.Pass(1);
    CHECK(h.NowCalls(1) == 0);
  }
}

TEST_CASE("a rule that becomes less patient does not shorten what the strategy has spared") {
  CoreOptions options = testing::HarnessOptions();
  options.restart_grace_ms = 3000;
  CoreHarness h(options);
  h.Rules({PatientFor(1000)});
  h.Take(h.Hello("a"), 1);
  h.Restart();
  h.Pass(1500);
  h.Rules({PatientFor(600'000)});
  h.Rules({PatientFor(500)});
  h.Pass(1499);
  CHECK(h.NowCalls(1) == 1);
  h.Pass(1);
  CHECK(h.NowCalls(1) == 0);
}

}  // namespace
}  // namespace nowcalls::core
