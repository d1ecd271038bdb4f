// Acquire, release, keep and reclaim of a core whose batches are all committed.
#include <doctest/doctest.h>

#include <limits>

#include "support/core_harness.h"
#include "support/only_flow.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;
using testing::FindWrongBook;
using testing::ReadLedger;
using testing::RuleOptions;
using testing::TokensText;

TEST_CASE("a granted acquire tells the token, the fence, nowCalls, the level and the hold time") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 5, .resource_timeout_ms = 3000}});
  const SessionSlot a = h.Hello("a");
  const AcquireAnswer answer = h.Acquire(a, 1, 2);
  CHECK(answer.status == TokenStatus::kOk);
  CHECK(answer.refused_by == RefusedBy::kNone);
  CHECK(answer.token_id.value > 0);
  CHECK(answer.fence.value > 0);
  CHECK(answer.now_calls == 2);
  CHECK(answer.level == 5);
  CHECK(answer.hold_ms == 6000);
  CHECK(h.NowCalls(1) == 2);
}

TEST_CASE("the ledger holds a token as it was granted, and its session once") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 5, .resource_timeout_ms = 3000}});
  const SessionSlot a = h.Hello("a");
  CHECK(ReadLedger(&h.store()).sessions.empty());
  const AcquireAnswer first = h.Acquire(a, 1, 2);
  h.Take(a, 1);
  const auto content = ReadLedger(&h.store());
  REQUIRE(content.sessions.size() == 1);
  CHECK(content.sessions[0].client_id == "a");
  CHECK(content.sessions[0].name_space == "app");
  REQUIRE(content.tokens.size() == 2);
  const ledger::Token expected{
      .key = {ledger::Family::kTokensShort, CoreHarness::kStartMs + 6000, first.token_id},
      .flow = FlowId{1},
      .session = content.sessions[0].id,
      .count = 2,
      .issued_ms = CoreHarness::kStartMs,
      .fence = first.fence};
  CHECK(content.tokens[0] == expected);
}

TEST_CASE("a token lies in the family of its hold time") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 5000},
           {.flow = 2, .resource_timeout_ms = 5001},
           {.flow = 3, .resource_timeout_ms = 150'001}});
  const SessionSlot a = h.Hello("a");
  for (const int64_t flow : {1, 2, 3}) h.Take(a, flow);
  const auto content = ReadLedger(&h.store());
  REQUIRE(content.tokens.size() == 3);
  CHECK(content.tokens[0].key.family == ledger::Family::kTokensShort);
  CHECK(content.tokens[1].key.family == ledger::Family::kTokensMedium);
  CHECK(content.tokens[2].key.family == ledger::Family::kTokensLong);
}

// Invariant 3.
TEST_CASE("nothing is granted beyond the level") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 5}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1, 3);
  const AcquireAnswer refused = h.Acquire(a, 1, 3);
  CHECK(refused.status == TokenStatus::kBlocked);
  CHECK(refused.refused_by == RefusedBy::kLevel);
  CHECK(refused.token_id.value == 0);
  CHECK(refused.fence.value == 0);
  CHECK(refused.now_calls == 3);
  CHECK(refused.level == 5);
  CHECK(h.NowCalls(1) == 3);
  CHECK(h.Acquire(a, 1, 2).status == TokenStatus::kOk);
  CHECK(h.Acquire(a, 1, 1).status == TokenStatus::kBlocked);
  CHECK(h.core()
            .flows()
            .at(OnlyFlow(h.core().flows(), 1))
            .counters.refused[static_cast<size_t>(RefusedBy::kLevel)] == 2);
}

TEST_CASE("a count of 2^31-1 is granted whole, and one more call is refused") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 2147483647}});
  const SessionSlot a = h.Hello("a");
  CHECK(h.Acquire(a, 1, 2147483647).status == TokenStatus::kOk);
  CHECK(h.Acquire(a, 1, 1).status == TokenStatus::kBlocked);
  CHECK(h.NowCalls(1) == 2147483647);
}

TEST_CASE("a count or flow id out of range is a bad request") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1e12}});
  const SessionSlot a = h.Hello("a");
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  for (const int64_t count : {int64_t{0}, int64_t{-1}, kMin, kMax, int64_t{2147483648}}) {
    CHECK(h.Acquire(a, 1, count).status == TokenStatus::kBadRequest);
  }
  for (const int64_t flow : {int64_t{0}, int64_t{-1}, kMin}) {
    CHECK(h.Acquire(a, flow, 1).status == TokenStatus::kBadRequest);
  }
  CHECK(h.Acquire(a, kMax, 1).status == TokenStatus::kNoRuleExists);
  CHECK(h.core().books().tokens().size() == 0);
}

TEST_CASE("a level may be fractional: what exceeds it is refused") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 2.9}, {.flow = 2, .count = 0.5}, {.flow = 3, .count = 0}});
  const SessionSlot a = h.Hello("a");
  CHECK(h.Acquire(a, 1, 3).status == TokenStatus::kBlocked);
  CHECK(h.Acquire(a, 1, 2).status == TokenStatus::kOk);
  CHECK(h.Acquire(a, 1, 1).status == TokenStatus::kBlocked);
  CHECK(h.Acquire(a, 2, 1).status == TokenStatus::kBlocked);
  CHECK(h.Acquire(a, 3, 1).status == TokenStatus::kBlocked);
}

TEST_CASE("a level beyond all integers is a level") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1e300}, {.flow = 2, .count = 1.7e308, .avg_local = true}});
  h.Hello("b");
  const SessionSlot a = h.Hello("a");
  CHECK(h.Acquire(a, 1, 2147483647).status == TokenStatus::kOk);
  CHECK(h.Acquire(a, 1, 2147483647).status == TokenStatus::kOk);
  CHECK(h.Acquire(a, 2, 2147483647).status == TokenStatus::kOk);
  CHECK(h.Acquire(a, 1, 1).level > 0);
}

TEST_CASE("under AVG_LOCAL the level is the count times the sessions online in the namespace") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1.5, .avg_local = true}});
  const SessionSlot a = h.Hello("a");
  CHECK(h.Acquire(a, 1, 2).level == 1);
  const SessionSlot b = h.Hello("b");
  h.Hello("elsewhere", "other");
  CHECK(h.Acquire(a, 1, 4).level == 3);
  CHECK(h.Acquire(a, 1, 3).status == TokenStatus::kOk);
  CHECK(h.Acquire(b, 1, 1).status == TokenStatus::kBlocked);
  const SessionSlot c = h.HelloUnnamed("@c");
  CHECK(h.Acquire(c, 1, 1).status == TokenStatus::kOk);
}

TEST_CASE("under AVG_LOCAL a client that leaves lowers the level, and nothing is taken back") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 2, .avg_local = true}});
  const SessionSlot a = h.Hello("a");
  const SessionSlot b = h.Hello("b");
  const TokenId token = h.Take(a, 1, 4);
  h.Goodbye(b);
  CHECK(h.Acquire(a, 1, 1).level == 2);
  CHECK(h.NowCalls(1) == 4);
  CHECK(h.Acquire(a, 1, 1).status == TokenStatus::kBlocked);
  CHECK(h.Release(a, token) == TokenStatus::kReleaseOk);
  CHECK(h.Acquire(a, 1, 2).status == TokenStatus::kOk);
}

TEST_CASE("a released token is not released twice") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 5}});
  const SessionSlot a = h.Hello("a");
  const TokenId first = h.Take(a, 1, 2);
  const TokenId second = h.Take(a, 1, 3);
  CHECK(h.Release(a, first) == TokenStatus::kReleaseOk);
  CHECK(h.NowCalls(1) == 3);
  for (int i = 0; i < 3; ++i) CHECK(h.Release(a, first) == TokenStatus::kAlreadyRelease);
  CHECK(h.NowCalls(1) == 3);
  CHECK(h.IsLive(second));
  CHECK(h.Ended(1, EndReason::kReleased) == 1);
}

TEST_CASE("an unknown token is released already, whatever its number is") {
  CoreHarness h;
  h.Rules({{.flow = 1}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1);
  for (const uint64_t id : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 63, UINT64_MAX}) {
    CHECK(h.Release(a, TokenId{id}) == TokenStatus::kAlreadyRelease);
    CHECK(h.Keep(a, TokenId{id}).status == TokenStatus::kAlreadyRelease);
    CHECK(h.Reclaim(TokenId{id}) == TokenStatus::kAlreadyRelease);
  }
  CHECK(h.NowCalls(1) == 1);
}

// Invariant 5.
TEST_CASE("a Sentinel connection ends and keeps tokens of others of its namespace, and no other") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 10}});
  const auto sentinel = [&](const char* name_space, const char* shown) {
    return h.core()
        .Hello(h.step(), {.name_space = name_space, .display_id = shown, .of_sentinel = true})
        ->session;
  };
  const SessionSlot holder = sentinel("app", "@10.0.0.1:1");
  const SessionSlot fellow = sentinel("app", "@10.0.0.1:2");
  const SessionSlot stranger = sentinel("other", "@10.0.0.1:3");
  const SessionSlot named = h.Hello("named", "app");
  const SessionSlot nameless =
      h.core().Hello(h.step(), {.name_space = "app", .display_id = "@10.0.0.1:4"})->session;
  const auto touch = [&](SessionSlot session, TokenId token, TokenScope scope) {
    return h.core().Keep(h.step(), session, token, scope).status == TokenStatus::kOk &&
           h.core().Release(h.step(), session, token, scope) == TokenStatus::kReleaseOk;
  };
  const TokenId token = h.Take(holder, 1, 3);
  for (const SessionSlot session : {stranger, named, nameless, kNoSession}) {
    CHECK_FALSE(touch(session, token, TokenScope::kSentinel));
    CHECK_FALSE(touch(session, token, TokenScope::kSession));
  }
  CHECK_FALSE(touch(fellow, token, TokenScope::kSession));
  for (const SessionSlot session : {named, nameless}) {
    const TokenId theirs = h.Take(session, 1);
    CHECK_FALSE(touch(fellow, theirs, TokenScope::kSentinel));
    CHECK(touch(session, theirs, TokenScope::kSession));
  }
  CHECK(h.NowCalls(1) == 3);
  CHECK(touch(fellow, token, TokenScope::kSentinel));
  CHECK_FALSE(touch(holder, token, TokenScope::kSentinel));
  CHECK(h.NowCalls(1) == 0);
  CHECK(h.core().books().sessions().at(holder).now_calls == 0);
}

TEST_CASE("a token of another session is as good as unknown") {
  CoreHarness h;
  h.Rules({{.flow = 1}});
  const SessionSlot a = h.Hello("a");
  const SessionSlot b = h.Hello("b");
  const SessionSlot same_name = h.Hello("a", "other");
  const TokenId token = h.Take(a, 1);
  for (const SessionSlot session : {b, same_name, kNoSession}) {
    CHECK(h.Release(session, token) == TokenStatus::kAlreadyRelease);
    CHECK(h.Keep(session, token).status == TokenStatus::kAlreadyRelease);
  }
  CHECK(h.NowCalls(1) == 1);
  CHECK(h.Release(a, token) == TokenStatus::kReleaseOk);
}

TEST_CASE("a release after resourceTimeout is counted as late") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 1000}});
  const SessionSlot a = h.Hello("a");
  const TokenId in_time = h.Take(a, 1);
  const TokenId late = h.Take(a, 1);
  const TokenId kept = h.Take(a, 1);
  h.Sleep(1000);
  CHECK(h.Release(a, in_time) == TokenStatus::kReleaseOk);
  CHECK(h.Keep(a, kept).status == TokenStatus::kOk);
  h.Sleep(1);
  CHECK(h.Release(a, late) == TokenStatus::kReleaseOk);
  h.Sleep(999);
  CHECK(h.Release(a, kept) == TokenStatus::kReleaseOk);
  CHECK(h.Ended(1, EndReason::kReleased) == 2);
  CHECK(h.Ended(1, EndReason::kReleasedLate) == 1);
}

TEST_CASE("a release soon after a keep is in time, however long the token has been kept") {
  constexpr int64_t kHourMs = 3'600'000;
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = kHourMs}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1);
  const TokenId late = h.Take(a, 1);
  for (int64_t hour = 0; hour < int64_t{60} * 24; ++hour) {
    h.Sleep(kHourMs);
    REQUIRE(h.Keep(a, token).status == TokenStatus::kOk);
    REQUIRE(h.Keep(a, late).status == TokenStatus::kOk);
  }
  h.Sleep(kHourMs);
  CHECK(h.Release(a, token) == TokenStatus::kReleaseOk);
  CHECK(h.Ended(1, EndReason::kReleased) == 1);
  h.Sleep(1);
  CHECK(h.Release(a, late) == TokenStatus::kReleaseOk);
  CHECK(h.Ended(1, EndReason::kReleasedLate) == 1);
}

TEST_CASE("a release after the deadline and before the sweep is a late release") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 1000}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1);
  h.Sleep(60'000);
  CHECK(h.Release(a, token) == TokenStatus::kReleaseOk);
  h.Pass(1000);
  CHECK(h.Ended(1, EndReason::kReleasedLate) == 1);
  CHECK(h.Ended(1, EndReason::kResourceTimeout) == 0);
}

TEST_CASE("a call may hold its token for less time than its rule allows, and not for more") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 2, .resource_timeout_ms = 60'000}});
  const SessionSlot a = h.Hello("a");
  const auto ask = [&](int64_t hold_ms, int64_t wait_ms, uint32_t tag) {
    return h.Ask(a, {.flow = FlowId{1}, .wait_ms = wait_ms, .hold_ms = hold_ms}, tag);
  };
  const auto brief = ask(500, 0, 1);
  CHECK(brief->hold_ms == 500);
  CHECK(ask(INT64_MAX, 0, 2)->hold_ms == 120'000);
  // One that waits keeps its wish until it is granted.
  REQUIRE_FALSE(ask(700, 10'000, 3).has_value());
  h.Pass(499);
  CHECK(h.IsLive(brief->token_id));
  h.Pass(200);
  CHECK_FALSE(h.IsLive(brief->token_id));
  CHECK(h.Ended(1, EndReason::kResourceTimeout) == 1);
  CHECK(h.LateText() == "3 OK");
  h.Pass(1000);
  CHECK(h.Ended(1, EndReason::kResourceTimeout) == 2);
}

TEST_CASE("a keep gives a token its rule's time, and a restart its own") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 2, .resource_timeout_ms = 60'000}});
  const SessionSlot a = h.Hello("a");
  const auto kept = h.Ask(a, {.flow = FlowId{1}, .hold_ms = 20'000}, 1);
  const auto left = h.Ask(a, {.flow = FlowId{1}, .hold_ms = 20'000}, 2);
  CHECK(h.Keep(a, kept->token_id).hold_ms == 120'000);
  h.Restart();
  h.Hello("a");
  h.Pass(19'000);
  CHECK(h.IsLive(left->token_id));
  h.Pass(3000);
  CHECK_FALSE(h.IsLive(left->token_id));
  CHECK(h.IsLive(kept->token_id));
}

TEST_CASE("keeps do not hold a token beyond its rule's maxHoldMs, and tell what is left") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 1000, .max_hold_ms = 5000}});
  const SessionSlot a = h.Hello("a");
  const AcquireAnswer granted = h.Acquire(a, 1);
  CHECK(granted.hold_ms == 2000);
  h.Pass(1500);
  CHECK(h.Keep(a, granted.token_id).hold_ms == 2000);
  h.Pass(1900);
  CHECK(h.Keep(a, granted.token_id).hold_ms == 1600);
  h.Pass(1500);
  CHECK(h.Keep(a, granted.token_id).hold_ms == 100);
  h.Pass(99);
  CHECK(h.IsLive(granted.token_id));
  h.Pass(165);
  CHECK_FALSE(h.IsLive(granted.token_id));
  CHECK(h.Ended(1, EndReason::kResourceTimeout) == 1);
}

TEST_CASE("a grant holds no longer than maxHoldMs, whatever it asks for") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 60'000, .max_hold_ms = 700}});
  const SessionSlot a = h.Hello("a");
  CHECK(h.Acquire(a, 1).hold_ms == 700);
  CHECK(h.Ask(a, {.flow = FlowId{1}, .hold_ms = 5000}, 1)->hold_ms == 700);
  CHECK(h.Ask(a, {.flow = FlowId{1}, .hold_ms = 300}, 2)->hold_ms == 300);
  const auto content = ReadLedger(&h.store());
  REQUIRE(content.tokens.size() == 3);
  CHECK(content.tokens[0].key.family == ledger::Family::kTokensShort);
  CHECK(content.tokens[0].key.deadline_ms == CoreHarness::kStartMs + 700);
}

TEST_CASE("a keep that comes after the longest hold ends the token") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1, .resource_timeout_ms = 1000, .max_hold_ms = 1000}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1);
  h.core().TakeLosses();
  h.Sleep(1000);  // No sweep has come by.
  const KeepAnswer keep = h.Keep(a, token);
  CHECK(keep.status == TokenStatus::kAlreadyRelease);
  CHECK(keep.hold_ms == 0);
  CHECK_FALSE(h.IsLive(token));
  CHECK(h.Ended(1, EndReason::kResourceTimeout) == 1);
  const std::vector<Loss> losses = h.core().TakeLosses();
  REQUIRE(losses.size() == 1);
  CHECK(losses[0].token == token);
  CHECK(losses[0].reason == EndReason::kResourceTimeout);
  CHECK(h.Acquire(a, 1).status == TokenStatus::kOk);
}

TEST_CASE("a changed maxHoldMs holds for tokens that are out from their next keep on") {
  CoreHarness h;
  const RuleOptions unbounded{.flow = 1, .resource_timeout_ms = 3000};
  RuleOptions bounded = unbounded;
  bounded.max_hold_ms = 4000;
  h.Rules({unbounded});
  const SessionSlot a = h.Hello("a");
  const TokenId left = h.Take(a, 1);
  const TokenId kept = h.Take(a, 1);
  const TokenId over = h.Take(a, 1);
  h.Rules({bounded});
  h.Pass(3000);
  CHECK(h.Keep(a, kept).hold_ms == 1000);
  h.Pass(1500);
  CHECK_FALSE(h.IsLive(kept));
  CHECK(h.Keep(a, over).status == TokenStatus::kAlreadyRelease);
  CHECK(h.IsLive(left));
  h.Rules({unbounded});
  CHECK(h.Keep(a, left).hold_ms == 6000);
  h.Rules({bounded});
  h.Rules({});  // A removed rule's times hold.
  CHECK(h.Keep(a, left).status == TokenStatus::kAlreadyRelease);
}

TEST_CASE("a kept token gets its whole hold time again") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 1000}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1);
  for (int i = 0; i < 20; ++i) {
    h.Pass(1900);
    const KeepAnswer keep = h.Keep(a, token);
    CHECK(keep.status == TokenStatus::kOk);
    CHECK(keep.hold_ms == 2000);
    const auto content = ReadLedger(&h.store());
    REQUIRE(content.tokens.size() == 1);
    CHECK(content.tokens[0].key.deadline_ms == h.now().ms + 2000);
    CHECK(content.tokens[0].issued_ms == CoreHarness::kStartMs);
  }
  CHECK(h.NowCalls(1) == 1);
  h.Pass(2100);
  CHECK(h.NowCalls(1) == 0);
  CHECK(h.Ended(1, EndReason::kResourceTimeout) == 1);
}

TEST_CASE("a token kept twice within one millisecond moves once") {
  CoreHarness h;
  h.Rules({{.flow = 1}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1);
  h.auto_commit = false;
  CHECK(h.Keep(a, token).hold_ms == 4000);
  CHECK(h.batch().empty());
  h.Sleep(1);
  h.Keep(a, token);
  h.Keep(a, token);
  CHECK(h.batch().records() == 1);
}

TEST_CASE("a keep under a rule with new times uses the new times, and the family that fits") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 1000}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1);
  h.Rules({{.flow = 1, .resource_timeout_ms = 100'000}});
  CHECK(h.Keep(a, token).hold_ms == 200'000);
  const auto content = ReadLedger(&h.store());
  REQUIRE(content.tokens.size() == 1);
  CHECK(content.tokens[0].key.family == ledger::Family::kTokensMedium);
  CHECK(content.tokens[0].key.deadline_ms == h.now().ms + 200'000);
  CHECK(TokensText(content) == TokensText(h.core()));
}

TEST_CASE("the factor between resourceTimeout and the hold time is configurable") {
  CoreOptions options = testing::HarnessOptions();
  options.resource_timeout_factor = 2.5;
  CoreHarness h(options);
  h.Rules({{.flow = 1, .resource_timeout_ms = 1001}});
  CHECK(h.Acquire(h.Hello("a"), 1).hold_ms == 2503);
}

TEST_CASE("an administrator reclaims any token once, and says why in the log") {
  CoreHarness h;
  h.Rules({{.flow = 1}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1);
  h.NoticesText();
  CHECK(h.core().Reclaim(h.step(), token, {"10.0.0.1:5", "stuck since noon"}) ==
        TokenStatus::kReleaseOk);
  h.Commit();
  CHECK(h.NoticesText() == "administrator 10.0.0.1:5 reclaimed token " +
                               std::to_string(token.value) +
                               " of flow 1 from client a: stuck since noon\n");
  CHECK(h.Reclaim(token) == TokenStatus::kAlreadyRelease);
  CHECK(h.Release(a, token) == TokenStatus::kAlreadyRelease);
  CHECK(h.NowCalls(1) == 0);
  CHECK(h.Ended(1, EndReason::kAdmin) == 1);
  CHECK(ReadLedger(&h.store()).tokens.empty());
}

// Invariant 6.
TEST_CASE("fences grow with each grant") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 100}, {.flow = 2, .count = 100}});
  const SessionSlot a = h.Hello("a");
  uint64_t before = 0;
  for (int i = 0; i < 50; ++i) {
    const AcquireAnswer answer = h.Acquire(a, 1 + i % 2);
    CHECK(answer.fence.value > before);
    before = answer.fence.value;
    if (i % 3 == 0) h.Release(a, answer.token_id);
    if (i % 7 == 0) h.Hello("b" + std::to_string(i));
  }
  CHECK(FindWrongBook(h.core()) == "");
}

TEST_CASE("whether a release is late is told from the grant or keep, whatever the rule was then") {
  const auto rule = [](int64_t timeout_ms) {
    return std::vector<RuleOptions>{{.flow = 1, .resource_timeout_ms = timeout_ms}};
  };
  CoreHarness h;
  h.Rules(rule(1000));
  const SessionSlot a = h.Hello("a");
  const TokenId soon = h.Take(a, 1);
  h.Rules(rule(60'000));
  h.Sleep(9);
  h.Release(a, soon);
  CHECK(h.Ended(1, EndReason::kReleased) == 1);
  const TokenId late = h.Take(a, 1);
  const TokenId kept = h.Take(a, 1);
  h.Rules(rule(1000));
  h.Sleep(1001);
  h.Keep(a, kept);
  h.Release(a, late);
  CHECK(h.Ended(1, EndReason::kReleasedLate) == 1);
  h.Sleep(1000);
  h.Release(a, kept);
  CHECK(h.Ended(1, EndReason::kReleased) == 2);
}

TEST_CASE("a token that was spared is still released late") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 2000, .client_offline_ms = 60'000}});
  const TokenId token = h.Take(h.Hello("a"), 1);
  h.Restart(5000);
  const SessionSlot back = h.Hello("a");
  h.Pass(1000);  // Restart grace moved its deadline.
  REQUIRE(h.IsLive(token));
  h.Release(back, token);
  CHECK(h.Ended(1, EndReason::kReleasedLate) == 1);
}

}  // namespace
}  // namespace nowcalls::core
