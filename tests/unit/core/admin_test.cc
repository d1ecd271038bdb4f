// What administrators do: reclaims in pieces, purges, drains.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/books.h"
#include "support/core_harness.h"
#include "support/only_flow.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;
using testing::FindWrongBook;
using testing::HistoryOf;
using testing::ReadLedger;
using testing::RulesJson;

const AdminAct kAct{"10.0.0.1:5", "job died"};

// "2 more", "0"
std::string Text(const ReclaimAnswer& answer) {
  return std::to_string(answer.reclaimed) + (answer.more ? " more" : "");
}
std::string Text(const Result<ReclaimAnswer>& answer) {
  return answer.ok() ? Text(*answer) : answer.status().ToString();
}

// Flows 1 and 2; clients a and b of namespace app with tokens of both.
struct Fixture {
  Fixture() : a(h.Hello("a")), b(h.Hello("b")) {
    h.Rules({{.flow = 1, .count = 100}, {.flow = 2, .count = 100}});
    for (int i = 0; i < 5; ++i) of_a.push_back(h.Take(a, 1 + i % 2, 2));
    for (int i = 0; i < 3; ++i) of_b.push_back(h.Take(b, 1));
    h.NoticesText();
  }
  std::string ReclaimClient(std::string_view client, uint32_t tokens_max,
                            std::string_view name_space = "app") {
    const ReclaimAnswer answer =
        h.core().ReclaimClient(h.step(), {name_space, client}, tokens_max, kAct);
    if (!h.batch().empty()) h.Commit();
    REQUIRE(FindWrongBook(h.core()) == "");
    return Text(answer);
  }
  std::string SpaceOfFlow1() {
    const FlowTable& flows = h.core().flows();
    return flows.name_space(flows.at(OnlyFlow(flows, 1)).name_space).name;
  }
  std::string ReclaimFlow(int64_t flow, uint32_t tokens_max) {
    const auto answer = h.core().ReclaimFlow(h.step(), FlowId(flow), tokens_max, kAct);
    if (!h.batch().empty()) h.Commit();
    REQUIRE(FindWrongBook(h.core()) == "");
    return Text(answer);
  }
  std::string Purge(int64_t flow, uint32_t tokens_max) {
    const auto answer = h.core().Purge(h.step(), FlowId(flow), tokens_max, kAct);
    if (!h.batch().empty()) h.Commit();
    REQUIRE(FindWrongBook(h.core()) == "");
    return Text(answer);
  }
  DrainAnswer Drain(int64_t flow, bool on) {
    const DrainAnswer answer = *h.core().Drain(h.step(), FlowId(flow), on, kAct);
    if (!h.batch().empty()) h.Commit();
    return answer;
  }
  const Flow& FlowOf(int64_t flow) { return h.core().flows().at(OnlyFlow(h.core().flows(), flow)); }

  CoreHarness h;
  SessionSlot a;
  SessionSlot b;
  std::vector<TokenId> of_a;
  std::vector<TokenId> of_b;
};

TEST_CASE_FIXTURE(Fixture, "a client's tokens are taken back in pieces, the oldest first") {
  CHECK(ReclaimClient("a", 2) == "2 more");
  CHECK_FALSE(h.IsLive(of_a[0]));
  CHECK_FALSE(h.IsLive(of_a[1]));
  CHECK(h.IsLive(of_a[2]));
  CHECK(ReclaimClient("a", 3) == "3");
  CHECK(ReclaimClient("a", 3) == "0");
  CHECK(h.core().books().tokens().size() == 3);
  CHECK(h.NowCalls(1) == 3);
  CHECK(h.NowCalls(2) == 0);
  CHECK(h.Ended(1, EndReason::kAdmin) == 3);
  CHECK(h.Ended(2, EndReason::kAdmin) == 2);
  CHECK(h.NoticesText() ==
        "administrator 10.0.0.1:5 reclaimed 2 tokens of client a of namespace app: job died; more "
        "are left\n"
        "administrator 10.0.0.1:5 reclaimed 3 tokens of client a of namespace app: job died\n");
  for (const auto& entry : HistoryOf(h.core())) {
    CHECK(entry.reason == EndReason::kAdmin);
    CHECK(entry.client_id == "a");
    CHECK(entry.note == "job died");
  }
  CHECK(h.core().books().history().size() == 5);
}

TEST_CASE_FIXTURE(Fixture, "a client of another namespace, or none at all, loses nothing") {
  CHECK(ReclaimClient("a", 10, "other") == "0");
  CHECK(ReclaimClient("c", 10) == "0");
  CHECK(ReclaimClient("", 10) == "0");
  CHECK(h.core().books().tokens().size() == 8);
  CHECK(h.NoticesText() == "");
}

TEST_CASE_FIXTURE(Fixture, "an absent client is gone with the last token taken from it") {
  h.Goodbye(a);
  CHECK(ReclaimClient("a", 4) == "4 more");
  CHECK(h.core().books().sessions().size() == 2);
  CHECK(ReclaimClient("a", 4) == "1");
  CHECK(h.core().books().sessions().size() == 1);
  CHECK(ReadLedger(&h.store()).sessions.size() == 1);
  h.Pass(100'000);
  CHECK(h.core().books().tokens().size() == 0);
}

TEST_CASE_FIXTURE(Fixture, "connections without a client id are named by their address") {
  const SessionSlot first = h.HelloUnnamed("@127.0.0.1:77");
  h.Take(first, 1);
  h.Take(first, 1);
  h.Goodbye(first);
  const SessionSlot second = h.HelloUnnamed("@127.0.0.1:77");
  h.Take(second, 1);
  h.Take(h.HelloUnnamed("@127.0.0.1:7"), 1);
  CHECK(ReclaimClient("@127.0.0.1:77", 1) == "1 more");
  CHECK(ReclaimClient("@127.0.0.1:77", 1) == "1 more");
  CHECK(ReclaimClient("@127.0.0.1:77", 1) == "1");
  CHECK(ReclaimClient("@127.0.0.1:77", 1) == "0");
  CHECK(h.core().books().tokens().size() == 9);
}

TEST_CASE_FIXTURE(Fixture, "a flow's tokens are taken back in pieces, whoever holds them") {
  CHECK(ReclaimFlow(1, 4) == "4 more");
  CHECK(ReclaimFlow(1, 2) == "2");
  CHECK(ReclaimFlow(1, 2) == "0");
  CHECK(h.NowCalls(1) == 0);
  CHECK(h.NowCalls(2) == 4);
  CHECK(h.core().books().history().size() == 6);
  CHECK(h.NoticesText() ==
        "administrator 10.0.0.1:5 reclaimed 4 tokens of flow 1: job died; more are left\n"
        "administrator 10.0.0.1:5 reclaimed 2 tokens of flow 1: job died\n");
  CHECK(ReclaimFlow(3, 2) == "not_found: flow_id 3 has neither a rule nor tokens");
}

TEST_CASE_FIXTURE(Fixture, "a namespace is reclaimed in pieces, by flow, also of removed rules") {
  const auto reclaim = [&](std::string_view name_space, int64_t first_flow, uint32_t limit) {
    const ReclaimPage page =
        h.core().ReclaimNamespace(h.step(), {name_space, first_flow, limit}, kAct);
    if (!h.batch().empty()) h.Commit();
    REQUIRE(FindWrongBook(h.core()) == "");
    return std::to_string(page.reclaimed) + " then " + std::to_string(page.next_flow);
  };
  const size_t before = h.core().books().tokens().size();
  REQUIRE(before > 6);
  CHECK(reclaim("unknown", 0, 5) == "0 then 0");
  CHECK(h.core().books().tokens().size() == before);
  const std::string space = SpaceOfFlow1();
  h.NoticesText();
  CHECK(reclaim(space, 0, 4) == "4 then 1");
  CHECK(reclaim(space, 1, 3).starts_with("3 then 2"));
  CHECK(h.NowCalls(1) == 0);
  h.Rules({});  // Its rules are gone, some tokens are still out.
  h.NoticesText();
  CHECK(reclaim(space, 2, 1000).ends_with(" then 0"));
  CHECK(h.core().books().tokens().size() == 0);
  CHECK(h.core().flows().size() == 0);
}

TEST_CASE_FIXTURE(Fixture, "a namespace is drained in pieces, and grants again when that ends") {
  const std::string space = SpaceOfFlow1();
  const auto drain = [&](int64_t first_flow, uint32_t limit, bool on) {
    const DrainPage page = *h.core().DrainNamespace(h.step(), {space, first_flow, limit}, on, kAct);
    if (!h.batch().empty()) h.Commit();
    return page;
  };
  CHECK(h.core().DrainNamespace(h.step(), {"unknown", 0, 9}, true, kAct)->status ==
        TokenStatus::kNoRuleExists);
  const DrainPage first = drain(0, 1, true);
  CHECK(first.status == TokenStatus::kOk);
  CHECK(first.rules == 1);
  CHECK(first.tokens == 6);
  CHECK(first.next_flow == 2);
  const SessionSlot late = h.Hello("late");
  CHECK(h.Acquire(late, 1).refused_by == RefusedBy::kDraining);
  CHECK(h.Acquire(late, 2).refused_by != RefusedBy::kDraining);
  CHECK(drain(2, 1000, true).next_flow == 0);
  CHECK(h.Acquire(late, 2).refused_by == RefusedBy::kDraining);
  h.Restart();
  CHECK(drain(0, 1000, false).rules == 2);
  CHECK(h.Acquire(h.Hello("later"), 2).status == TokenStatus::kOk);
}

TEST_CASE_FIXTURE(Fixture, "a flow without a rule is reclaimed to its end, and then gone") {
  h.Rules({{.flow = 2}});
  CHECK(ReclaimFlow(1, 5) == "5 more");
  CHECK(ReclaimFlow(1, 5) == "1");
  CHECK(ReclaimFlow(1, 5) == "not_found: flow_id 1 has neither a rule nor tokens");
  CHECK(ReadLedger(&h.store()).rules.size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "purge takes back what a removed rule has left behind, in pieces") {
  h.Rules({{.flow = 2}});
  h.NoticesText();
  CHECK(Purge(1, 4) == "4 more");
  CHECK(h.Ended(1, EndReason::kRuleRemoved) == 4);
  CHECK(Purge(1, 4) == "2");
  CHECK(h.NoticesText() ==
        "administrator 10.0.0.1:5 purged 4 tokens of flow 1, whose rule was removed: job died; "
        "more are left\n"
        "administrator 10.0.0.1:5 purged 2 tokens of flow 1, whose rule was removed: job died\n");
  for (const auto& entry : HistoryOf(h.core())) {
    CHECK(entry.reason == EndReason::kRuleRemoved);
    CHECK(entry.note == "job died");
  }
  CHECK(h.core().books().history().size() == 6);
  CHECK(Purge(1, 4) == "not_found: flow_id 1 has neither a rule nor tokens");
}

TEST_CASE_FIXTURE(Fixture, "who purges nothing is not told in the log") {
  h.Rules({});
  h.NoticesText();
  CHECK(Purge(1, 0) == "0 more");
  CHECK(h.NoticesText().empty());
}

TEST_CASE_FIXTURE(Fixture, "purge refuses a flow whose rule is in force") {
  CHECK(Purge(1, 4) ==
        "invalid_argument: flow_id 1 has a rule in force; purge is for flows whose rule was "
        "removed: remove the rule first, or use reclaim_flow");
  CHECK(h.core().books().tokens().size() == 8);
  h.Rules({{.flow = 2}});
  h.Rules({{.flow = 1}, {.flow = 2}});
  CHECK(Purge(1, 4).starts_with("invalid_argument: "));
}

TEST_CASE_FIXTURE(Fixture, "a listing between two pages goes on behind what is taken back") {
  const auto first = h.core().ListTokens(h.now(), 1, {}, 2, 0);
  REQUIRE(first.ok());
  ReclaimClient("a", 5);
  const auto rest = h.core().ListTokens(h.now(), 1, {}, 10, first->next_cursor);
  REQUIRE(rest.ok());
  CHECK(rest->tokens.size() == 3);
}

TEST_CASE_FIXTURE(Fixture, "a draining flow grants nothing, and what is out is released and kept") {
  const DrainAnswer answer = Drain(1, true);
  CHECK(answer.status == TokenStatus::kOk);
  CHECK(answer.tokens == 6);
  CHECK(answer.now_calls == 9);
  CHECK(h.NoticesText() ==
        "administrator 10.0.0.1:5 began to drain flow 1, 6 tokens with nowCalls 9 are out: job "
        "died\n");
  const AcquireAnswer refused = h.Acquire(a, 1);
  CHECK(refused.status == TokenStatus::kBlocked);
  CHECK(refused.refused_by == RefusedBy::kDraining);
  CHECK(refused.now_calls == 9);
  CHECK(refused.level == 100);
  CHECK(FlowOf(1).counters.refused[static_cast<size_t>(RefusedBy::kDraining)] == 1);
  CHECK(FlowOf(1).counters.refused[static_cast<size_t>(RefusedBy::kLevel)] == 0);
  CHECK(h.Acquire(a, 2).status == TokenStatus::kOk);
  CHECK(h.Keep(a, of_a[0]).status == TokenStatus::kOk);
  CHECK(h.Release(a, of_a[0]) == TokenStatus::kReleaseOk);
  CHECK(Drain(1, false).status == TokenStatus::kOk);
  CHECK(h.NoticesText() == "administrator 10.0.0.1:5 ended the drain of flow 1: job died\n");
  CHECK(h.Acquire(a, 1).status == TokenStatus::kOk);
}

TEST_CASE_FIXTURE(Fixture, "draining twice is draining once, and needs a rule in force") {
  CHECK(Drain(1, false).status == TokenStatus::kOk);
  CHECK(h.NoticesText() == "");
  Drain(1, true);
  h.NoticesText();
  const uint64_t batches = h.core().books().batch_number();
  CHECK(Drain(1, true).status == TokenStatus::kOk);
  CHECK(h.core().books().batch_number() == batches);
  CHECK(h.NoticesText() == "");
  CHECK(Drain(3, true).status == TokenStatus::kNoRuleExists);
  CHECK(Drain(0, true).status == TokenStatus::kNoRuleExists);
  h.Rules({{.flow = 2}});
  CHECK(Drain(1, true).status == TokenStatus::kNoRuleExists);
}

TEST_CASE_FIXTURE(Fixture, "a drain holds across a restart") {
  Drain(1, true);
  h.Restart();
  CHECK(FlowOf(1).draining);
  CHECK_FALSE(FlowOf(2).draining);
  CHECK(h.Acquire(h.Hello("a"), 1).refused_by == RefusedBy::kDraining);
  Drain(1, false);
  h.Restart();
  CHECK(h.Acquire(h.Hello("a"), 1).status == TokenStatus::kOk);
}

TEST_CASE_FIXTURE(Fixture, "a drain holds when the rule is loaded again, as it was or changed") {
  Drain(1, true);
  h.Rules({{.flow = 1, .count = 100}, {.flow = 2, .count = 100}});
  CHECK(FlowOf(1).draining);
  h.Rules({{.flow = 1, .count = 50}, {.flow = 2, .count = 100}});
  CHECK(FlowOf(1).draining);
  CHECK(h.Acquire(a, 1).level == 50);
  h.Restart();
  CHECK(FlowOf(1).draining);
}

TEST_CASE_FIXTURE(Fixture, "a drain goes with its flow to another namespace, as do its tokens") {
  h.Take(a, 2);
  Drain(1, true);
  const auto batches = h.core().books().batch_number();
  const Status moved = h.core().ReplaceRules(
      h.step(), RefsTo({{.name_space = "app", .parsed = ParseRules("[]").value()},
                        {.name_space = "other",
                         .parsed = ParseRules(RulesJson({{.flow = 1}, {.flow = 2}})).value()}}));
  REQUIRE(moved.ToString() == "ok");
  h.Commit();
  for (const bool restarted : {false, true}) {
    CAPTURE(restarted);
    if (restarted) h.Restart();
    CHECK(h.core().books().batch_number() > batches);
    CHECK(FlowOf(1).draining);
    CHECK(h.core().flows().name_space(FlowOf(1).name_space).name == "other");
    CHECK(h.Acquire(h.Hello("b"), 1).refused_by == RefusedBy::kDraining);
    CHECK(testing::ReadLedger(&h.store()).rules.size() == 2);
    CHECK(testing::ReadLedger(&h.store()).namespaces.size() == 1);
  }
}

TEST_CASE_FIXTURE(Fixture, "a drain ends when the rule is removed, with tokens out or without") {
  Drain(1, true);
  h.NoticesText();
  h.Rules({{.flow = 2, .count = 100}});
  CHECK(h.NoticesText().starts_with("namespace app: the drain of flow 1 ended with its rule\n"));
  h.Rules({{.flow = 1, .count = 100}, {.flow = 2, .count = 100}});
  CHECK(h.Acquire(a, 1).status == TokenStatus::kOk);
  Drain(2, true);
  ReclaimFlow(2, 10);
  h.Rules({});
  h.Rules({{.flow = 2, .count = 100}});
  CHECK(h.Acquire(a, 2).status == TokenStatus::kOk);
  h.Restart();
  CHECK_FALSE(FlowOf(2).draining);
}

}  // namespace
}  // namespace nowcalls::core
