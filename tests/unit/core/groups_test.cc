// acquire_all: all tokens or none, at once or after a wait in one line after the other.
#include "core/grants/groups.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "core/grants/waiter_list.h"
#include "core/rules/rule_json.h"
#include "core/rules/rule_set.h"
#include "support/core_harness.h"
#include "support/only_flow.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;
using testing::RuleOptions;

constexpr int64_t kHoldMs = 100'000;

std::vector<RuleOptions> RulesOf(std::initializer_list<std::pair<int64_t, double>> flows) {
  std::vector<RuleOptions> rules;
  for (const auto& [flow, count] : flows) {
    rules.push_back({.flow = flow,
                     .count = count,
                     .resource_timeout_ms = kHoldMs,
                     .client_offline_ms = kHoldMs});
  }
  return rules;
}

ParsedRules SetOf(std::initializer_list<std::pair<int64_t, double>> flows) {
  return ParseRules(testing::RulesJson(RulesOf(flows))).value();
}

// Flows 1, 2 and 3 with a level of one each, and sessions.
struct ThreeLanes {
  ThreeLanes() { h.Rules(RulesOf({{1, 1}, {2, 1}, {3, 1}})); }

  std::optional<AcquireAllAnswer> Ask(SessionSlot session, std::vector<AllItem> items, uint32_t tag,
                                      int64_t wait_ms = 0, uint64_t request_id = 0,
                                      uint32_t owner = 0) {
    return h.AskAll(session, {.items = items, .wait_ms = wait_ms, .request_id = request_id}, tag,
                    owner);
  }
  // "OK" or "BLOCKED level of 2".
  std::string Refusal(SessionSlot session, const std::vector<AllItem>& items) {
    const std::optional<AcquireAllAnswer> answer = Ask(session, items, 0);
    REQUIRE(answer.has_value());
    CHECK(answer->tokens.size() == (answer->status == TokenStatus::kOk ? items.size() : 0));
    std::string text(TokenStatusName(answer->status));
    if (answer->refused_by != RefusedBy::kNone) {
      text += " " + std::string(RefusedByName(answer->refused_by));
    }
    return answer->flow.value == 0 ? text : text + " of " + std::to_string(answer->flow.value);
  }
  // "1:7 2:8": by flow and place the tags of those who wait.
  std::string Lines() {
    std::string text;
    for (const WaiterPlace& place : ListWaiters(h.core().books(), h.core().wait_queues(), {}, 99)) {
      const Waiter& waiter = h.core().wait_queues().at(place.waiter);
      text += (text.empty() ? "" : " ") +
              std::to_string(h.core().flows().at(waiter.lane.flow_slot).id.value) + ":" +
              std::to_string(waiter.ticket.tag);
    }
    return text;
  }
  void WaitFor(int64_t flow, uint32_t tag, int64_t count = 1) {
    REQUIRE_FALSE(
        h.Ask(b, {.flow = FlowId{flow}, .count = count, .wait_ms = 50'000}, tag).has_value());
  }
  void WaitForAll(const std::vector<AllItem>& items, uint32_t tag) {
    REQUIRE_FALSE(Ask(b, items, tag, 50'000).has_value());
  }

  CoreHarness h;
  SessionSlot a = h.Hello("a");
  SessionSlot b = h.Hello("b");
};

const std::vector<AllItem> kOneTwo = {{.flow = FlowId{1}}, {.flow = FlowId{2}}};
const std::vector<AllItem> kTwoOne = {{.flow = FlowId{2}}, {.flow = FlowId{1}}};
const std::vector<AllItem> kAllThree = {
    {.flow = FlowId{1}}, {.flow = FlowId{2}}, {.flow = FlowId{3}}};

TEST_CASE("all tokens of an acquire_all are granted, in the order of the request") {
  ThreeLanes t;
  const auto answer = t.Ask(t.a, kTwoOne, 0);
  REQUIRE(answer->tokens.size() == 2);
  CHECK(answer->status == TokenStatus::kOk);
  CHECK(answer->tokens[0].fence.value + 1 == answer->tokens[1].fence.value);
  CHECK(answer->tokens[0].hold_ms == 2 * kHoldMs);
  CHECK(t.h.NowCalls(1) == 1);
  CHECK(t.h.NowCalls(2) == 1);
  CHECK(t.h.Release(t.a, answer->tokens[0].id) == TokenStatus::kReleaseOk);
  CHECK(t.h.NowCalls(1) == 1);
  CHECK(t.h.NowCalls(2) == 0);
  CHECK(t.h.Keep(t.a, answer->tokens[1].id).status == TokenStatus::kOk);
}

TEST_CASE("a crash keeps all tokens of an acquire_all or none") {
  ThreeLanes t;
  const auto kept = t.Ask(t.a, kOneTwo, 0);
  t.h.auto_commit = false;
  t.Ask(t.b, {{.flow = FlowId{3}}}, 0);
  t.h.auto_commit = true;
  t.h.Restart();
  CHECK(t.h.core().books().tokens().size() == 2);
  for (const GrantedToken& token : kept->tokens) CHECK(t.h.IsLive(token.id));
}

TEST_CASE("one item without room refuses the whole, and nothing is taken") {
  ThreeLanes t;
  t.h.Take(t.b, 2);
  const auto answer = t.Ask(t.a, kTwoOne, 0);
  CHECK(answer->status == TokenStatus::kBlocked);
  CHECK(answer->refused_by == RefusedBy::kLevel);
  CHECK(answer->flow == FlowId{2});
  CHECK(answer->now_calls == 1);
  CHECK(answer->level == 1);
  CHECK(answer->tokens.empty());
  CHECK(t.h.NowCalls(1) == 0);
  const auto refused = [&](int64_t flow) {
    const FlowSlot slot = OnlyFlow(t.h.core().flows(), flow);
    return t.h.core().flows().at(slot).counters.refused[static_cast<size_t>(RefusedBy::kLevel)];
  };
  CHECK(refused(1) == 0);
  CHECK(refused(2) == 1);
}

TEST_CASE("what no wait helps is told first, and each in the order of flows") {
  ThreeLanes t;
  CHECK(t.Refusal(t.a, {{.flow = FlowId{3}, .count = 0}, {.flow = FlowId{1}}}) ==
        "BAD_REQUEST of 3");
  CHECK(t.Refusal(t.a, {{.flow = FlowId{9}}, {.flow = FlowId{8}}}) == "NO_RULE_EXISTS of 8");
  t.h.Take(t.b, 1);
  t.h.Take(t.b, 2);
  CHECK(t.Refusal(t.a, {{.flow = FlowId{2}}, {.flow = FlowId{1}}}) == "BLOCKED level of 1");
  CHECK(t.Refusal(t.a, {{.flow = FlowId{1}}, {.flow = FlowId{3}, .count = 2}}) ==
        "BLOCKED over_level of 3");
  CHECK(t.Refusal(t.a, {{.flow = FlowId{1}}, {.flow = FlowId{9}}}) == "NO_RULE_EXISTS of 9");
  REQUIRE(t.h.core().Drain(t.h.step(), FlowId{3}, true, {"test", ""}).ok());
  CHECK(t.Refusal(t.a, kAllThree) == "BLOCKED draining of 3");
  const Param value{ParamType::kString, "v"};
  CHECK(t.Refusal(t.a, {{.flow = FlowId{1}, .param = value}}) == "BAD_REQUEST param of 1");
  t.h.core().SetDiskLow(true);
  CHECK(t.Refusal(t.a, {{.flow = FlowId{1}}}) == "TOO_MANY_REQUEST disk_low");
  CHECK(t.h.core().wait_queues().size() == 0);
}

TEST_CASE("a group waits where the first lane is in the way, and holds nothing") {
  ThreeLanes t;
  const TokenId second = t.h.Take(t.a, 2);
  t.WaitForAll({{.flow = FlowId{3}}, {.flow = FlowId{2}}, {.flow = FlowId{1}}}, 7);
  CHECK(t.Lines() == "2:7");
  for (const int64_t flow : {1, 3}) t.h.Release(t.a, t.h.Take(t.a, flow));
  t.h.Release(t.a, second);
  CHECK(t.h.LateText() == "7 OK");
  CHECK(t.h.core().books().tokens().size() == 3);
  CHECK(t.Lines().empty());
}

TEST_CASE("a group whose turn comes goes on to the lane that is full, and others pass it") {
  ThreeLanes t;
  const TokenId first = t.h.Take(t.a, 1);
  t.WaitForAll(kOneTwo, 7);
  t.WaitFor(1, 8);
  const TokenId second = t.h.Take(t.a, 2);
  CHECK(t.Lines() == "1:7 1:8");
  t.h.Release(t.a, first);
  CHECK(t.h.LateText() == "8 OK");
  CHECK(t.Lines() == "2:7");
  // Room in the second lane alone sends it back.
  t.h.Release(t.a, second);
  CHECK(t.h.LateText().empty());
  CHECK(t.Lines() == "1:7");
  CHECK(t.h.NowCalls(2) == 0);
}

TEST_CASE("a group that moves has the place that its arrival gives it") {
  ThreeLanes t;
  const TokenId first = t.h.Take(t.a, 1);
  const TokenId second = t.h.Take(t.a, 2);
  t.WaitFor(2, 6);
  t.WaitForAll(kOneTwo, 7);
  t.WaitFor(2, 8);
  CHECK(t.Lines() == "1:7 2:6 2:8");
  t.h.Release(t.a, first);
  CHECK(t.Lines() == "2:6 2:7 2:8");
  t.h.Release(t.a, second);
  CHECK(t.h.LateText() == "6 OK");
  CHECK(t.Lines() == "2:7 2:8");
}

TEST_CASE("a group does not overtake an older waiter, and a younger one does not stop it") {
  ThreeLanes t;
  t.h.Rules(RulesOf({{1, 1}, {2, 4}}));
  const TokenId first = t.h.Take(t.a, 1);
  const TokenId second = t.h.Take(t.a, 2, 2);
  SUBCASE("an older one wants more of the second lane than there is") {
    t.WaitFor(2, 6, 3);
    t.WaitForAll(kOneTwo, 7);
    t.h.Release(t.a, first);
    CHECK(t.Lines() == "2:6 2:7");
    t.h.Release(t.a, second);
    CHECK(t.h.LateText() == "6 OK, 7 OK");
  }
  SUBCASE("a younger one does") {
    t.WaitForAll(kOneTwo, 7);
    t.WaitFor(2, 8, 3);
    t.h.Release(t.a, first);
    CHECK(t.h.LateText() == "7 OK");
    CHECK(t.Lines() == "2:8");
  }
  SUBCASE("a new group is behind all") {
    t.WaitFor(2, 6, 3);
    t.h.Release(t.a, first);
    CHECK(t.Refusal(t.a, kOneTwo) == "BLOCKED waiters_ahead of 2");
  }
}

TEST_CASE("groups over the same lanes in any order are all served") {
  ThreeLanes t;
  const auto held = t.Ask(t.a, kAllThree, 0);
  const std::vector<std::vector<AllItem>> groups = {kOneTwo,
                                                    {{.flow = FlowId{3}}, {.flow = FlowId{2}}},
                                                    {{.flow = FlowId{3}}, {.flow = FlowId{1}}},
                                                    kAllThree};
  for (uint32_t i = 0; i < groups.size(); ++i) t.WaitForAll(groups[i], i + 1);
  for (const GrantedToken& token : held->tokens) t.h.Release(t.a, token.id);
  size_t served = 0;
  for (int turn = 0; turn < 4; ++turn) {
    const std::vector<LateAnswer> late = t.h.core().TakeLateAnswers();
    for (const LateAnswer& answer : late) {
      REQUIRE(answer.all->tokens.size() == groups[answer.ticket.tag - 1].size());
      ++served;
      for (const GrantedToken& token : answer.all->tokens) t.h.Release(t.b, token.id);
    }
  }
  CHECK(served == 4);
  CHECK(t.h.core().books().tokens().size() == 0);
}

TEST_CASE("a group that no room would help waits aside and delays nobody") {
  ThreeLanes t;
  std::vector<RuleOptions> rules = RulesOf({{1, 2}, {2, 2}});
  rules[1].max_per_client = 1;
  t.h.Rules(rules);
  const TokenId first = t.h.Take(t.a, 1, 2);
  const TokenId second = t.h.Take(t.b, 2);
  t.WaitForAll(kOneTwo, 7);  // Its session is at the cap of the second.
  t.h.Release(t.a, first);
  CHECK(t.Lines() == "2:7");
  CHECK(t.h.Acquire(t.a, 2).status == TokenStatus::kOk);
  t.h.Release(t.b, second);
  CHECK(t.h.LateText() == "7 OK");

  // A level that falls below what it asks for: until it rises.
  t.h.Rules(RulesOf({{1, 1}, {2, 9}}));
  t.WaitForAll({{.flow = FlowId{1}}, {.flow = FlowId{2}, .count = 5}}, 8);
  t.h.Rules(RulesOf({{1, 9}, {2, 3}}));
  CHECK(t.Lines() == "2:8");
  t.h.Rules(RulesOf({{1, 9}, {2, 9}}));
  CHECK(t.h.LateText() == "8 OK");
}

TEST_CASE("a group that leaves a line lets the next waiter of its session come forward") {
  ThreeLanes t;
  std::vector<RuleOptions> rules = RulesOf({{1, 5}, {2, 1}});
  rules[0].max_per_client = 1;
  t.h.Rules(rules);
  const TokenId held = t.h.Take(t.b, 1);
  t.WaitForAll(kOneTwo, 7);  // Both stand aside, at the cap of their session.
  t.WaitFor(1, 8);
  t.h.Release(t.a, t.h.Take(t.a, 1));  // Which looks at the line.
  t.h.Take(t.a, 2);
  t.h.Release(t.b, held);
  CHECK(t.h.LateText() == "8 OK");
  CHECK(t.Lines() == "2:7");
}

TEST_CASE("a group that takes its session to a cap lets others pass that session's waiters") {
  ThreeLanes t;
  std::vector<RuleOptions> rules = RulesOf({{1, 1}, {2, 4}});
  rules[1].max_per_client = 3;
  t.h.Rules(rules);
  const TokenId held = t.h.Take(t.a, 1);
  t.h.Take(t.a, 2, 2);
  t.WaitForAll(kOneTwo, 7);
  t.WaitFor(2, 8, 3);
  const SessionSlot c = t.h.Hello("c");
  REQUIRE_FALSE(t.h.Ask(c, {.flow = FlowId{2}, .wait_ms = 1000}, 9).has_value());
  t.h.Release(t.a, held);
  CHECK(t.h.LateText() == "7 OK, 9 OK");
  CHECK(t.Lines() == "2:8");
}

TEST_CASE("a lane of a group that loses its rule or drains refuses the group when its turn comes") {
  ThreeLanes t;
  const TokenId first = t.h.Take(t.a, 1);
  t.WaitForAll(kOneTwo, 7);
  SUBCASE("the rule of another lane is removed") {
    t.h.Rules(RulesOf({{1, 1}}));
    CHECK(t.h.LateText().empty());
    t.h.Release(t.a, first);
    CHECK(t.h.LateText() == "7 NO_RULE_EXISTS of 2");
  }
  SUBCASE("another lane drains") {
    REQUIRE(t.h.core().Drain(t.h.step(), FlowId{2}, true, {"test", ""}).ok());
    t.h.Release(t.a, first);
    CHECK(t.h.LateText() == "7 BLOCKED draining of 2");
  }
  SUBCASE("the rule of its own lane is removed: at once") {
    t.h.Rules(RulesOf({{2, 1}}));
    CHECK(t.h.LateText() == "7 NO_RULE_EXISTS of 1");
  }
  SUBCASE("the rule of another lane moves to another namespace") {
    const RuleSet here{.name_space = "app", .parsed = SetOf({{1, 1}})};
    const RuleSet there{.name_space = "other", .parsed = SetOf({{2, 1}})};
    REQUIRE(t.h.core().ReplaceRules(t.h.step(), {&here, &there}).ok());
    t.h.Commit();
    CHECK(t.h.LateText().empty());
    t.h.Release(t.a, first);
    CHECK(t.h.LateText() == "7 NO_RULE_EXISTS of 2");
    CHECK(t.h.NowCalls(2) == 0);
  }
  SUBCASE("the rule of its own lane moves to another namespace: at once") {
    const RuleSet here{.name_space = "app", .parsed = SetOf({{2, 1}})};
    const RuleSet there{.name_space = "other", .parsed = SetOf({{1, 1}})};
    REQUIRE(t.h.core().ReplaceRules(t.h.step(), {&here, &there}).ok());
    t.h.Commit();
    CHECK(t.h.LateText() == "7 NO_RULE_EXISTS of 1");
    t.h.Release(t.a, first);
    CHECK(t.h.NowCalls(1) == 0);
  }
  SUBCASE("its own lane drains: at once") {
    REQUIRE(t.h.core().Drain(t.h.step(), FlowId{1}, true, {"test", ""}).ok());
    CHECK(t.h.LateText() == "7 BLOCKED draining of 1");
  }
  SUBCASE("the disk is low when its turn comes") {
    t.h.core().SetDiskLow(true);
    t.h.Release(t.a, first);
    CHECK(t.h.LateText() == "7 TOO_MANY_REQUEST disk_low");
  }
  SUBCASE("the server ends") {
    t.h.core().CloseQueues(t.h.step());
    CHECK(t.h.LateText() == "7 NOT_AVAILABLE of 1");
  }
  SUBCASE("its time is over") {
    t.h.Pass(50'000);
    CHECK(t.h.LateText() == "7 BLOCKED queue_timeout of 1");
  }
  SUBCASE("its connection closes") {
    t.h.DropWaiters(0);
    t.h.Release(t.a, first);
    CHECK(t.h.LateText().empty());
    CHECK(t.h.core().books().tokens().size() == 0);
  }
  CHECK(t.Lines().empty());
  CHECK(testing::FindWrongBook(t.h.core()).empty());
}

TEST_CASE("the deadline and the connection of a group move with it") {
  ThreeLanes t;
  const TokenId first = t.h.Take(t.a, 1);
  REQUIRE_FALSE(t.Ask(t.b, kOneTwo, 7, 1000, 0, /*owner=*/3).has_value());
  t.h.Take(t.a, 2);
  t.h.Release(t.a, first);
  CHECK(t.Lines() == "2:7");
  SUBCASE("it ends in time") {
    t.h.Pass(999);
    CHECK(t.h.LateText().empty());
    t.h.Pass(1);
    CHECK(t.h.LateText() == "7 BLOCKED queue_timeout of 2");
  }
  SUBCASE("it goes with its connection") { t.h.DropWaiters(3); }
  CHECK(t.Lines().empty());
}

TEST_CASE("the same request id gives the same tokens while all of them live") {
  ThreeLanes t;
  const auto granted = t.Ask(t.a, kTwoOne, 0, 0, 5);
  const auto again = [&](const std::vector<AllItem>& items) { return t.Ask(t.a, items, 0, 0, 5); };
  const auto check_same = [&] {
    const auto answer = again(kTwoOne);
    REQUIRE(answer->tokens.size() == 2);
    CHECK(answer->tokens[0].id == granted->tokens[0].id);
    CHECK(answer->tokens[1].fence == granted->tokens[1].fence);
    // In another order of the same items.
    CHECK(again(kOneTwo)->tokens[0].id == granted->tokens[1].id);
  };
  check_same();
  t.h.Restart();
  t.a = t.h.Hello("a");
  check_same();
  CHECK(t.h.core().books().tokens().size() == 2);
  // Any other request with the id is refused.
  const auto is_refused = [](const std::optional<AcquireAllAnswer>& answer) {
    return answer->status == TokenStatus::kBadRequest &&
           answer->refused_by == RefusedBy::kRequestId && answer->flow.value == 0;
  };
  CHECK(is_refused(again(kAllThree)));
  CHECK(is_refused(again({{.flow = FlowId{1}}})));
  CHECK(is_refused(again({{.flow = FlowId{1}, .count = 2}, {.flow = FlowId{2}}})));
  const auto single = [&] { return t.h.Ask(t.a, {.flow = FlowId{1}, .request_id = 5}, 0); };
  CHECK(single()->refused_by == RefusedBy::kRequestId);
  // A part of the group is no group. It is what an acquire of that part would have got.
  t.h.Release(t.a, granted->tokens[0].id);
  CHECK(is_refused(again(kTwoOne)));
  CHECK(single()->token_id == granted->tokens[1].id);
  CHECK(t.h.Cancel(t.a, 5) == TokenStatus::kReleaseOk);
  CHECK(t.h.core().books().tokens().size() == 0);
}

TEST_CASE("the request id of an acquire is refused to an acquire_all of more") {
  ThreeLanes t;
  const auto single = t.h.Ask(t.a, {.flow = FlowId{1}, .request_id = 5}, 0);
  REQUIRE(single->status == TokenStatus::kOk);
  CHECK(t.Ask(t.a, kOneTwo, 0, 0, 5)->refused_by == RefusedBy::kRequestId);
  CHECK(t.Ask(t.a, {{.flow = FlowId{1}}}, 0, 0, 5)->tokens[0].id == single->token_id);

  REQUIRE_FALSE(t.h.Ask(t.b, {.flow = FlowId{1}, .wait_ms = 1000, .request_id = 6}, 1).has_value());
  CHECK(t.Ask(t.b, {{.flow = FlowId{1}}}, 2, 1000, 6)->refused_by == RefusedBy::kRequestId);
  REQUIRE_FALSE(t.Ask(t.b, {{.flow = FlowId{1}}}, 3, 1000, 7).has_value());
  CHECK(t.h.Ask(t.b, {.flow = FlowId{1}, .wait_ms = 1000, .request_id = 7}, 4)->refused_by ==
        RefusedBy::kRequestId);
}

TEST_CASE("a cancel ends all tokens of a group, or its wait, and refuses it afterwards") {
  ThreeLanes t;
  t.Ask(t.a, kAllThree, 0, 0, 5);
  CHECK_FALSE(t.Ask(t.b, kOneTwo, 1, 1000, 5).has_value());
  CHECK(t.h.Cancel(t.b, 5) == TokenStatus::kReleaseOk);
  CHECK(t.h.LateText() == "1 BLOCKED cancelled of 1");
  CHECK(t.h.Cancel(t.a, 5) == TokenStatus::kReleaseOk);
  CHECK(t.h.core().books().tokens().size() == 0);
  CHECK(t.h.Ended(1, EndReason::kCancelled) == 1);
  CHECK(t.h.Ended(3, EndReason::kCancelled) == 1);
  CHECK(t.Ask(t.a, kAllThree, 2, 0, 5)->refused_by == RefusedBy::kCancelled);
  CHECK(t.h.Cancel(t.a, 5) == TokenStatus::kAlreadyRelease);
}

TEST_CASE("a group that is asked again while it waits keeps its place") {
  ThreeLanes t;
  const TokenId first = t.h.Take(t.a, 1);
  REQUIRE_FALSE(t.Ask(t.b, kOneTwo, 1, 1000, 5).has_value());
  t.WaitFor(1, 2);
  SUBCASE("with a wait, in another order") {
    REQUIRE_FALSE(t.Ask(t.b, kTwoOne, 3, 1000, 5, /*owner=*/1).has_value());
    CHECK(t.h.LateText() == "1 BLOCKED superseded of 1");
    CHECK(t.Lines() == "1:3 1:2");
    t.h.Release(t.a, first);
    const std::vector<LateAnswer> late = t.h.core().TakeLateAnswers();
    REQUIRE(late.size() == 1);
    REQUIRE(late[0].all->tokens.size() == 2);
    CHECK(late[0].ticket == WaitTicket{1, 3});
    t.h.Release(t.b, late[0].all->tokens[0].id);
    CHECK(t.h.NowCalls(2) == 0);
  }
  SUBCASE("without one: the place is lost") {
    CHECK(t.Ask(t.b, kOneTwo, 3, 0, 5)->refused_by == RefusedBy::kLevel);
    CHECK(t.h.LateText() == "1 BLOCKED superseded of 1");
    CHECK(t.Lines() == "1:2");
  }
  SUBCASE("for other items: refused, and the first goes on to wait") {
    CHECK(t.Ask(t.b, kAllThree, 3, 1000, 5)->refused_by == RefusedBy::kRequestId);
    CHECK(t.h.LateText().empty());
  }
}

TEST_CASE("each value of a parameter is a lane of its own") {
  ThreeLanes t;
  std::vector<RuleOptions> rules = RulesOf({{1, 1}, {2, 1}});
  rules[1].param.emplace();
  t.h.Rules(rules);
  const auto item = [](const char* value) {
    return AllItem{.flow = FlowId{2}, .param = Param{ParamType::kString, value}};
  };
  const KeyTable& keys = t.h.core().flows().keys();
  const auto held = t.Ask(t.a, {item("x"), {.flow = FlowId{1}}, item("y")}, 0);
  REQUIRE(held->tokens.size() == 3);
  CHECK(keys.size() == 2);
  // Keys of a refused or waiting group, in whose line nobody stands, are gone at once.
  CHECK(t.Refusal(t.b, {item("x"), item("z")}) == "BLOCKED param of 2");
  t.WaitForAll({item("z"), item("y")}, 7);
  CHECK(keys.size() == 2);
  CHECK(t.Refusal(t.b, {{.flow = FlowId{2}}}) == "BAD_REQUEST param of 2");
  t.h.Release(t.a, held->tokens[2].id);
  CHECK(t.h.LateText() == "7 OK");
  CHECK(keys.size() == 3);
  t.WaitForAll({item("x"), item("u")}, 8);
  t.h.DropWaiters(0);
  CHECK(keys.size() == 3);
  CHECK(testing::FindWrongBook(t.h.core()).empty());
}

TEST_CASE("a group needs room in the server's tables for all its tokens and values") {
  CoreOptions options = testing::HarnessOptions();
  options.limits.tokens_max = 2;
  options.limits.keys_max = 1;
  CoreHarness h(options);
  std::vector<RuleOptions> rules = RulesOf({{1, 9}, {2, 9}, {3, 9}});
  rules[2].param.emplace();
  h.Rules(rules);
  const SessionSlot a = h.Hello("a");
  const auto ask = [&](const std::vector<AllItem>& items) {
    return h.AskAll(a, {.items = items}, 0)->refused_by;
  };
  CHECK(ask(kOneTwo) == RefusedBy::kNone);
  CHECK(ask({{.flow = FlowId{1}}}) == RefusedBy::kTokenLimit);
  CHECK(ask({{.flow = FlowId{3}, .param = Param{ParamType::kString, "x"}},
             {.flow = FlowId{3}, .param = Param{ParamType::kString, "y"}}}) ==
        RefusedBy::kKeyLimit);
  CHECK(h.core().flows().keys().size() == 0);
}

TEST_CASE("shadow mode lets an item pass and counts what was in its way") {
  ThreeLanes t;
  std::vector<RuleOptions> rules = RulesOf({{1, 1}, {2, 1}});
  rules[0].shadow = true;
  t.h.Rules(rules);
  t.h.Take(t.a, 1);
  CHECK(t.Refusal(t.b, {{.flow = FlowId{1}, .count = 5}, {.flow = FlowId{2}}}) == "OK");
  const FlowSlot slot = OnlyFlow(t.h.core().flows(), 1);
  const auto& passed = t.h.core().flows().at(slot).counters.shadow_refused;
  CHECK(passed[static_cast<size_t>(RefusedBy::kOverLevel)] == 1);
  CHECK(t.Refusal(t.b, kOneTwo) == "BLOCKED level of 2");
  CHECK(passed[static_cast<size_t>(RefusedBy::kLevel)] == 0);
}

TEST_CASE("full queues refuse a new group, and a group that moves is taken") {
  CoreOptions options = testing::HarnessOptions();
  options.limits.waiters_per_rule_max = 1;
  CoreHarness h(options);
  h.Rules(RulesOf({{1, 1}, {2, 1}}));
  const SessionSlot a = h.Hello("a");
  const TokenId first = h.Take(a, 1);
  h.Take(a, 2);
  REQUIRE_FALSE(h.AskAll(a, {.items = kOneTwo, .wait_ms = 1000}, 1).has_value());
  CHECK(h.AskAll(a, {.items = kOneTwo, .wait_ms = 1000}, 2)->refused_by == RefusedBy::kQueueFull);
  REQUIRE_FALSE(h.Ask(a, {.flow = FlowId{2}, .wait_ms = 1000}, 3).has_value());
  h.Release(a, first);
  CHECK(h.core().flows().at(OnlyFlow(h.core().flows(), 2)).lane.waiting() == 2);
}

TEST_CASE("the memory of waiting groups is bounded, counted, and given back when they end") {
  CoreOptions options = testing::HarnessOptions();
  options.limits.waiter_bytes_max = 300'000;
  CoreHarness h(options);
  std::vector<RuleOptions> rules = {{.flow = 1, .count = 1}};
  std::vector<AllItem> items = {{.flow = FlowId{1}}};
  const std::string value(kParamBytesMax, 'v');
  for (int64_t flow = 2; flow <= 63; ++flow) {
    rules.push_back({.flow = flow, .count = 1, .param = ParamRule{}});
    items.push_back({.flow = FlowId{flow}, .param = Param{ParamType::kString, value}});
  }
  h.Rules(rules);
  const SessionSlot a = h.Hello("a");
  const TokenId first = h.Take(a, 1);
  const WaitQueues& queues = h.core().wait_queues();
  CHECK(queues.bytes() == 0);
  uint32_t waiting = 0;
  std::optional<AcquireAllAnswer> refused;
  while (!refused.has_value()) {
    refused = h.AskAll(a, {.items = items, .wait_ms = 1000, .request_id = waiting + 1}, waiting);
    if (!refused.has_value()) REQUIRE(++waiting < 10);
  }
  // Each keeps 62 values of a KiB.
  CHECK(waiting == 4);
  CHECK(refused->refused_by == RefusedBy::kQueueFull);
  CHECK(queues.bytes() > waiting * 62 * kParamBytesMax);
  CHECK(queues.bytes() < options.limits.waiter_bytes_max);
  const size_t four = queues.bytes();
  // Asked again, a group takes the place of the first, and no more memory.
  CHECK_FALSE(h.AskAll(a, {.items = items, .wait_ms = 1000, .request_id = 1}, 99).has_value());
  CHECK(queues.bytes() == four);
  CHECK(h.Cancel(a, 2) == TokenStatus::kReleaseOk);
  CHECK(queues.bytes() == four / 4 * 3);
  h.Release(a, first);  // One is granted.
  CHECK(queues.bytes() == four / 4 * 2);
  h.Pass(1000);
  CHECK(queues.size() == 0);
  CHECK(queues.bytes() == 0);
}

}  // namespace
}  // namespace nowcalls::core
