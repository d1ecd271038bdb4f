// Acquires with a request id: asked again, cancelled, remembered over restarts.
#include <doctest/doctest.h>

#include "core/books.h"
#include "core/loading.h"
#include "core/tables/request_ids.h"
#include "support/core_harness.h"
#include "support/only_flow.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;

AcquireRequest With(uint64_t request_id, int64_t wait_ms = 0, int64_t count = 1) {
  return {.flow = FlowId{1}, .count = count, .wait_ms = wait_ms, .request_id = request_id};
}

std::vector<testing::RuleOptions> OneRule(double count = 5) {
  return {{.flow = 1, .count = count, .resource_timeout_ms = 100'000, .client_offline_ms = 60'000}};
}

TEST_CASE("the same request id of a session gets the same token, not a second one") {
  CoreHarness h;
  h.Rules(OneRule());
  const SessionSlot a = h.Hello("a");
  const auto first = h.Ask(a, With(7), 1);
  REQUIRE(first.has_value());
  REQUIRE(first->status == TokenStatus::kOk);
  h.Pass(500);
  const auto again = h.Ask(a, With(7), 2);
  REQUIRE(again.has_value());
  CHECK(again->status == TokenStatus::kOk);
  CHECK(again->token_id == first->token_id);
  CHECK(again->fence == first->fence);
  CHECK(again->hold_ms == first->hold_ms - 500);  // Asking is not keeping.
  CHECK(h.NowCalls(1) == 1);

  const auto other = h.Ask(h.Hello("b"), With(7), 3);
  CHECK(other->token_id != first->token_id);
  CHECK(h.NowCalls(1) == 2);
}

TEST_CASE("after its token has ended a request id stands for nothing") {
  CoreHarness h;
  h.Rules(OneRule());
  const SessionSlot a = h.Hello("a");
  const auto first = h.Ask(a, With(7), 1);
  h.Release(a, first->token_id);
  const auto next = h.Ask(a, With(7), 2);
  CHECK(next->status == TokenStatus::kOk);
  CHECK(next->token_id != first->token_id);
}

TEST_CASE("a request id survives a crash with its token, and keeps, but not the token's end") {
  CoreHarness h;
  h.Rules(OneRule());
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Ask(a, With(7), 1)->token_id;
  const TokenId ended = h.Ask(a, With(8), 2)->token_id;
  h.Pass(100);
  h.Keep(a, token);
  h.Release(a, ended);
  h.Restart(10);
  const SessionSlot back = h.Hello("a");
  CHECK(h.Ask(back, With(7), 3)->token_id == token);
  CHECK(h.Ask(back, With(8), 4)->token_id != ended);
  CHECK(h.NowCalls(1) == 2);
}

TEST_CASE("a request id that is in use for another flow or count is refused by name") {
  CoreHarness h;
  h.Rules(OneRule(1));
  const SessionSlot a = h.Hello("a");
  h.Ask(a, With(7), 1);
  AcquireRequest other = With(7, 0, 2);
  const auto count = h.Ask(a, other, 2);
  CHECK(count->status == TokenStatus::kBadRequest);
  CHECK(count->refused_by == RefusedBy::kRequestId);
  other = With(7);
  other.flow = FlowId{2};
  CHECK(h.Ask(a, other, 3)->refused_by == RefusedBy::kRequestId);
  REQUIRE_FALSE(h.Ask(a, With(9, 1000), 4).has_value());
  other = With(9, 1000);
  other.flow = FlowId{2};
  CHECK(h.Ask(a, other, 5)->refused_by == RefusedBy::kRequestId);
  CHECK(h.core().wait_queues().size() == 1);
  // Counted where it was asked for, if there is such a flow.
  const auto& refused = h.core().flows().at(OnlyFlow(h.core().flows(), 1)).counters.refused;
  CHECK(refused[static_cast<size_t>(RefusedBy::kRequestId)] == 1);
  CHECK(h.core().flows().totals().refused[static_cast<size_t>(RefusedBy::kRequestId)] == 1);
}

TEST_CASE("a waiting request that is asked again keeps its place; the new call is answered") {
  CoreHarness h;
  h.Rules(OneRule(1));
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Ask(a, With(1), 1)->token_id;
  CHECK_FALSE(h.Ask(a, With(2, 300), 2, /*owner=*/5).has_value());
  CHECK_FALSE(h.Ask(a, With(3, 1000), 3, 5).has_value());
  h.Pass(200);
  CHECK_FALSE(h.Ask(a, With(2, 300), 4, /*owner=*/6).has_value());
  CHECK(h.LateText() == "2 BLOCKED superseded");
  h.DropWaiters(5);  // The connection of before is found dead only now.
  CHECK(h.core().wait_queues().size() == 1);
  h.Pass(250);  // Past the deadline of the first call.
  CHECK(h.LateText().empty());
  h.Release(a, token);
  CHECK(h.LateText() == "4 OK");
  CHECK(h.NowCalls(1) == 1);
}

TEST_CASE("asked again without waiting, a waiting request gives its place up") {
  CoreHarness h;
  h.Rules(OneRule(2));
  const SessionSlot a = h.Hello("a");
  h.Ask(a, With(1), 1);
  h.Ask(a, With(2, 300, 2), 2);
  h.Ask(a, With(3, 300), 3);
  const auto answer = h.Ask(a, With(2, 0, 2), 4);
  REQUIRE(answer.has_value());
  CHECK(answer->status == TokenStatus::kBlocked);
  CHECK(h.LateText() == "2 BLOCKED superseded, 3 OK");
}

TEST_CASE("cancel frees a token") {
  CoreHarness h;
  h.Rules(OneRule(1));
  const SessionSlot a = h.Hello("a");
  h.Ask(a, With(7), 1);
  h.Ask(a, With(8, 500), 2);
  CHECK(h.Cancel(a, 7) == TokenStatus::kReleaseOk);
  CHECK(h.LateText() == "2 OK");
  CHECK(h.Ended(1, EndReason::kCancelled) == 1);
  CHECK(h.Cancel(a, 7) == TokenStatus::kAlreadyRelease);
}

TEST_CASE("cancel ends a wait, and those behind go on") {
  CoreHarness h;
  h.Rules(OneRule(3));
  const SessionSlot a = h.Hello("a");
  h.Ask(a, With(1, 0, 2), 1);
  h.Ask(a, With(2, 500, 3), 2);
  h.Ask(a, With(3, 500), 3);
  CHECK(h.Cancel(a, 2) == TokenStatus::kReleaseOk);
  CHECK(h.LateText() == "2 BLOCKED cancelled, 3 OK");
}

TEST_CASE("an acquire that comes after its own cancel is refused for a while") {
  CoreHarness h;
  h.Rules(OneRule());
  const SessionSlot a = h.Hello("a");
  CHECK(h.Cancel(a, 7) == TokenStatus::kAlreadyRelease);
  const auto refused = h.Ask(a, With(7, 500), 1);
  REQUIRE(refused.has_value());
  CHECK(refused->status == TokenStatus::kBlocked);
  CHECK(refused->refused_by == RefusedBy::kCancelled);
  CHECK(h.Ask(h.Hello("b"), With(7), 2)->status == TokenStatus::kOk);
  h.Pass(Limits().cancel_remembered_ms);
  CHECK(h.Ask(a, With(7), 3)->status == TokenStatus::kOk);
}

TEST_CASE("a ledger with two tokens of one request is refused") {
  CoreHarness h;
  h.Rules(OneRule());
  h.Ask(h.Hello("a"), With(7), 1);
  auto content = testing::ReadLedger(&h.store());
  REQUIRE(content.tokens.size() == 1);
  CHECK(content.tokens[0].request_id == 7);
  Core core(testing::HarnessOptions());
  REQUIRE(core.loading().LoadRule(content.rules.at(0)).ok());
  REQUIRE(core.loading().LoadSession(content.sessions.at(0)).ok());
  REQUIRE(core.loading().LoadToken(content.tokens[0]).ok());
  ledger::Token twin = content.tokens[0];
  twin.fence.value += kAcquireAllMax;  // Nearer, one acquire_all may have issued both.
  twin.key.id = TokenIds(testing::HarnessOptions().token_id_key).FromFence(twin.fence);
  REQUIRE(core.loading().LoadToken(twin).ok());
  const Status refused = core.FinishLoad(content.seal);
  CHECK(refused.code() == StatusCode::kCorruption);
  CHECK(refused.message().ends_with("has the request id 7 of another token of its session"));
}

TEST_CASE("cancelled ids are few: the oldest is forgotten first, time forgets the rest") {
  RequestIds ids(3, 100);
  for (uint64_t id = 1; id <= 4; ++id) ids.Cancel(SessionId{1}, id, static_cast<int64_t>(100 * id));
  CHECK(ids.cancelled() == 3);
  CHECK_FALSE(ids.IsCancelled(SessionId{1}, 1, 0));
  CHECK(ids.IsCancelled(SessionId{1}, 2, 199));
  CHECK_FALSE(ids.IsCancelled(SessionId{1}, 2, 200));
  ids.ForgetCancelled(300, /*entries_max=*/1);
  CHECK(ids.cancelled() == 2);
  ids.ForgetCancelled(300, 100);
  CHECK(ids.cancelled() == 1);
  ids.Cancel(SessionId{1}, 4, 900);  // A second time counts from the second.
  ids.ForgetCancelled(400, 100);
  CHECK(ids.IsCancelled(SessionId{1}, 4, 899));
  CHECK_FALSE(ids.IsCancelled(SessionId{2}, 4, 0));
}

TEST_CASE(
    "an id that is cancelled twice in a millisecond is forgotten as late as the second time") {
  RequestIds ids(2, 100);
  ids.Cancel(SessionId{1}, 7, 900);
  ids.Cancel(SessionId{1}, 8, 900);
  ids.Cancel(SessionId{1}, 7, 900);
  ids.Cancel(SessionId{1}, 9, 900);
  CHECK(ids.IsCancelled(SessionId{1}, 7, 0));
  CHECK_FALSE(ids.IsCancelled(SessionId{1}, 8, 0));
  CHECK(ids.IsCancelled(SessionId{1}, 9, 0));
  ids.ForgetSession(SessionId{1});
  ids.ForgetCancelled(0, 100);
  CHECK(ids.cancelled() == 0);
}

TEST_CASE("an id that is cancelled again and again takes one place, and the last time counts") {
  RequestIds ids(3, 4);
  ids.Cancel(SessionId{1}, 7, 100);
  ids.Cancel(SessionId{2}, 1, 100);
  for (int64_t until_ms = 101; until_ms < 200; ++until_ms) ids.Cancel(SessionId{1}, 8, until_ms);
  CHECK(ids.cancelled() == 3);
  CHECK(ids.IsCancelled(SessionId{1}, 7, 99));
  CHECK(ids.IsCancelled(SessionId{2}, 1, 99));
  ids.ForgetCancelled(198, 100);
  CHECK(ids.cancelled() == 1);
  CHECK(ids.IsCancelled(SessionId{1}, 8, 198));
  ids.ForgetCancelled(199, 100);
  CHECK(ids.forget_ms() == INT64_MAX);
}

TEST_CASE("a session's cancelled ids are not forgotten for another's, until all are too many") {
  RequestIds ids(3, 5);
  const auto remembered = [&](uint64_t session) {
    std::string text;
    for (uint64_t id = 1; id <= 9; ++id) {
      if (ids.IsCancelled(SessionId{session}, id, 0)) text += std::to_string(id);
    }
    return text;
  };
  ids.Cancel(SessionId{1}, 1, 100);
  for (uint64_t id = 1; id <= 9; ++id) ids.Cancel(SessionId{2}, id, 200);
  CHECK(remembered(1) == "1");
  CHECK(remembered(2) == "789");
  ids.Cancel(SessionId{1}, 2, 300);
  ids.Cancel(SessionId{1}, 3, 300);  // Six would be too many: the oldest of all goes.
  CHECK(remembered(1) == "23");
  CHECK(remembered(2) == "789");
  ids.ForgetSession(SessionId{2});
  ids.Cancel(SessionId{1}, 4, 300);  // What a session that is gone has cancelled goes before all.
  CHECK(remembered(1) == "234");
  ids.ForgetCancelled(0, 100);
  CHECK(remembered(2).empty());
  CHECK(ids.cancelled() == 3);
  ids.ForgetCancelled(300, 100);
  CHECK(ids.cancelled() == 0);
}

TEST_CASE("what a session has cancelled is forgotten bit by bit when it has gone") {
  CoreHarness h;
  h.Rules(OneRule());
  const SessionSlot a = h.Hello("a");
  const SessionSlot b = h.Hello("b");
  h.Cancel(a, 1);
  for (uint64_t id = 1; id <= 5000; ++id) h.Cancel(b, id);
  const SessionId gone = h.core().books().sessions().at(b).id;
  h.Goodbye(b);
  h.DoDue();
  REQUIRE(h.core().books().sessions().size() == 1);
  size_t before = h.core().books().request_ids().cancelled();
  CHECK(before > 1000);
  for (int looks = 0; before > 1 && looks < 100; ++looks) {
    h.core().OnTime(h.step());
    CHECK(before - h.core().books().request_ids().cancelled() <= 1000);
    before = h.core().books().request_ids().cancelled();
  }
  CHECK(before == 1);
  CHECK(h.core().books().sessions().at(h.Hello("b")).id != gone);
}

TEST_CASE("a cancel forgets only a few of those whose time is over, and time forgets the rest") {
  CoreHarness h;
  h.Rules(OneRule());
  const SessionSlot a = h.Hello("a");
  for (uint64_t id = 1; id <= 5000; ++id) h.Cancel(a, id);
  REQUIRE(h.core().books().request_ids().cancelled() == 5000);
  h.Sleep(Limits().cancel_remembered_ms);
  h.Cancel(a, 9999);
  CHECK(h.core().books().request_ids().cancelled() > 4900);
  CHECK(h.core().books().request_ids().cancelled() < 5000);  // Fewer come than go.
  h.Sleep(1000);
  REQUIRE(h.core().NextDeadline() <= h.now());
  const size_t before = h.core().books().request_ids().cancelled();
  h.core().OnTime(h.step());
  CHECK(before - h.core().books().request_ids().cancelled() >= 100);
  CHECK(before - h.core().books().request_ids().cancelled() <= 1000);
  h.DoDue();
  CHECK(h.core().books().request_ids().cancelled() == 1);
  h.Pass(Limits().cancel_remembered_ms + 1000);
  CHECK(h.core().books().request_ids().cancelled() == 0);
  CHECK(h.core().NextDeadline() == kNever);
}

TEST_CASE("asking again on another connection does not get round the bound of its waiters") {
  CoreOptions options = testing::HarnessOptions();
  options.limits.waiters_per_connection_max = 2;
  CoreHarness h(options);
  h.Rules(OneRule(1));
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1);
  REQUIRE_FALSE(h.Ask(a, With(7, 1000), 1, /*owner=*/1).has_value());
  REQUIRE_FALSE(h.Ask(a, With(8, 1000), 2, /*owner=*/2).has_value());
  REQUIRE_FALSE(h.Ask(a, With(9, 1000), 3, /*owner=*/2).has_value());
  const auto full = h.Ask(a, With(7, 1000), 4, /*owner=*/2);
  REQUIRE(full.has_value());
  CHECK(full->refused_by == RefusedBy::kQueueFull);
  CHECK(h.LateText().empty());  // The first goes on waiting.
  CHECK(h.core().wait_queues().size() == 3);
}

}  // namespace
}  // namespace nowcalls::core
