// acquire_all with items that ask for calls a second: all or nothing with the tokens, in one
// decision, and nothing is burnt by a refusal.
#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "core/grants/groups.h"
#include "core/rates/rate_table.h"
#include "support/core_harness.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;
using testing::RuleOptions;

constexpr FlowId kLevelFlow{1};
constexpr FlowId kRateFlow{2};
constexpr FlowId kKeyedLevel{3};
constexpr FlowId kKeyedRate{4};

AllItem Token(FlowId flow = kLevelFlow) { return {.flow = flow}; }
AllItem RateOf(FlowId flow = kRateFlow, int64_t count = 1) {
  return {.flow = flow, .count = count, .rate = true};
}
AllItem WithKey(AllItem item, std::string_view key) {
  item.param = Param{ParamType::kString, key};
  return item;
}

// Flows 1 and 3 allow one call in progress, flows 2 and 4 two calls a second; 3 and 4 by value.
struct Gateway {
  explicit Gateway(const CoreOptions& options = testing::HarnessOptions()) : h(options) {
    h.Rules({{.flow = 1, .count = 1},
             {.flow = 2, .count = 2},
             {.flow = 3, .count = 1, .param = ParamRule{}},
             {.flow = 4, .count = 2, .param = ParamRule{}}});
    a = h.Hello("a");
    b = h.Hello("b");
  }

  std::optional<AcquireAllAnswer> Ask(SessionSlot session, const std::vector<AllItem>& items,
                                      int64_t wait_ms = 0, uint64_t request_id = 0,
                                      bool prioritized = false) {
    return h.AskAll(
        session,
        {.items = items, .prioritized = prioritized, .wait_ms = wait_ms, .request_id = request_id},
        7);
  }
  // "OK", or "BLOCKED level of 1".
  std::string Said(SessionSlot session, const std::vector<AllItem>& items,
                   uint64_t request_id = 0) {
    const auto answer = Ask(session, items, 0, request_id);
    REQUIRE(answer.has_value());
    std::string text(TokenStatusName(answer->status));
    if (answer->refused_by != RefusedBy::kNone) {
      text += " " + std::string(RefusedByName(answer->refused_by));
    }
    if (answer->value.has_value()) text += " of " + answer->value->bytes;
    return answer->flow.value == 0 ? text : text + " in " + std::to_string(answer->flow.value);
  }
  // Calls in the window of flow 2.
  int64_t Passed() {
    const RateState* rate = h.core().books().rates().Find(h.core().flows().Find({kRateFlow}));
    return rate == nullptr ? 0 : rate->window.passed();
  }

  CoreHarness h;
  SessionSlot a;
  SessionSlot b;
};

TEST_CASE("a group with a rate gets its tokens, and the rate without one, in the order asked") {
  Gateway g;
  const auto answer = g.Ask(g.a, {RateOf(), Token()});
  REQUIRE(answer->status == TokenStatus::kOk);
  REQUIRE(answer->tokens.size() == 2);
  CHECK(answer->tokens[0].id == TokenId{});
  CHECK(answer->tokens[0].fence == Fence{});
  CHECK(answer->tokens[0].hold_ms == 0);
  CHECK(answer->tokens[1].id != TokenId{});
  CHECK(g.Passed() == 1);
  CHECK(g.h.core().books().tokens().size() == 1);
  CHECK(g.h.Release(g.a, answer->tokens[1].id) == TokenStatus::kReleaseOk);
  CHECK(g.Passed() == 1);  // Nothing gives a rate back.
}

TEST_CASE("a group that a level refuses takes nothing of the rate, and the other way round") {
  Gateway g;
  const TokenId held = g.h.Take(g.b, 1);
  for (int i = 0; i < 5; ++i) CHECK(g.Said(g.a, {Token(), RateOf()}) == "BLOCKED level in 1");
  CHECK(g.Passed() == 0);
  g.h.Release(g.b, held);
  CHECK(g.Said(g.a, {RateOf(kRateFlow, 2)}) == "OK");
  CHECK(g.Said(g.a, {Token(), RateOf()}) == "BLOCKED rate in 2");
  CHECK(g.h.core().books().tokens().size() == 0);
  g.h.Sleep(1000);
  CHECK(g.Said(g.a, {Token(), RateOf()}) == "OK");
}

TEST_CASE("of several rates none is taken unless all have room") {
  Gateway g;
  REQUIRE(g.Said(g.a, {WithKey(RateOf(kKeyedRate, 2), "full")}) == "OK");
  for (int i = 0; i < 5; ++i) {
    CHECK(g.Said(g.a, {RateOf(), WithKey(RateOf(kKeyedRate), "free"),
                       WithKey(RateOf(kKeyedRate), "full")}) == "BLOCKED param of full in 4");
  }
  CHECK(g.Passed() == 0);
  CHECK(g.Said(g.a, {RateOf(kRateFlow, 2), WithKey(RateOf(kKeyedRate, 2), "free")}) == "OK");
}

TEST_CASE("a refused group leaves no more values than its rule remembers") {
  constexpr size_t kRemembered = 2;
  ParamRule remembers_two;
  remembers_two.values_max = kRemembered;
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 2, .param = remembers_two},
           {.flow = 2, .count = 1},
           {.flow = 3, .count = 1, .param = ParamRule{}}});
  const SessionSlot a = h.Hello("a");
  const AllItem of_all = RateOf(FlowId{2});
  const AllItem of_value = WithKey(RateOf(FlowId{3}), "full");
  REQUIRE(h.AskAll(a, {.items = std::vector{of_all, of_value}}, 7)->status == TokenStatus::kOk);
  for (const AllItem& refuses : {of_all, of_value}) {
    for (int i = 0; i < 10; ++i) {
      const std::string key = "key-" + std::to_string(i);
      const std::vector<AllItem> items = {WithKey(RateOf(FlowId{1}), key), refuses};
      REQUIRE(h.AskAll(a, {.items = items}, 7)->status == TokenStatus::kBlocked);
      const FlowSlot slot = h.core().flows().Find({FlowId{1}, FlowKind::kValue});
      REQUIRE(h.core().books().rates().Find(slot)->values.list.size <= kRemembered);
    }
  }
}

TEST_CASE("the value in the way of a group is named, whatever its rule refuses it for") {
  Gateway g;
  REQUIRE(g.h.core().Drain(g.h.step(), {kKeyedLevel}, true, {}).ok());
  CHECK(g.Said(g.a, {WithKey(Token(kKeyedLevel), "acme")}) == "BLOCKED draining of acme in 3");
  REQUIRE(g.h.core().Drain(g.h.step(), {kKeyedLevel}, false, {}).ok());
  REQUIRE(g.Said(g.a, {WithKey(Token(kKeyedLevel), "acme")}) == "OK");
  CHECK_FALSE(g.Ask(g.b, {WithKey(Token(kKeyedLevel), "acme")}, 1000).has_value());
  g.h.Pass(1000);
  const std::vector<LateAnswer> late = g.h.core().TakeLateAnswers();
  REQUIRE(late.size() == 1);
  CHECK(late[0].all->value->bytes == "acme");
}

TEST_CASE("a gateway's call takes a level and a rate of its key, or neither") {
  Gateway g;
  const auto call = [&](std::string_view key) {
    return std::vector<AllItem>{WithKey(Token(kKeyedLevel), key), WithKey(RateOf(kKeyedRate), key)};
  };
  const auto first = g.Ask(g.a, call("acme"));
  REQUIRE(first->status == TokenStatus::kOk);
  for (int i = 0; i < 9; ++i) CHECK(g.Said(g.a, call("acme")) == "BLOCKED param of acme in 3");
  CHECK(g.Said(g.a, call("other")) == "OK");
  g.h.Release(g.a, first->tokens[0].id);
  // The refused calls have burnt nothing: the second call of this second passes.
  const auto second = g.Ask(g.a, call("acme"));
  REQUIRE(second->status == TokenStatus::kOk);
  g.h.Release(g.a, second->tokens[0].id);
  CHECK(g.Said(g.a, call("acme")) == "BLOCKED param of acme in 4");
}

TEST_CASE("a group that waits takes its rate when it is granted, not before") {
  Gateway g;
  const TokenId held = g.h.Take(g.b, 1);
  REQUIRE_FALSE(g.Ask(g.a, {Token(), RateOf(kRateFlow, 2)}, 10'000).has_value());
  CHECK(g.Passed() == 0);
  CHECK(g.Said(g.b, {RateOf(kRateFlow, 2)}) == "OK");
  g.h.Sleep(1000);
  g.h.Release(g.b, held);
  const std::vector<LateAnswer> late = g.h.core().TakeLateAnswers();
  REQUIRE(late.size() == 1);
  CHECK(late[0].all->status == TokenStatus::kOk);
  CHECK(g.Passed() == 2);
}

TEST_CASE("a group whose turn comes while its rate is full is refused, and takes no token") {
  Gateway g;
  const TokenId held = g.h.Take(g.b, 1);
  REQUIRE_FALSE(g.Ask(g.a, {Token(), RateOf()}, 10'000).has_value());
  REQUIRE(g.Said(g.b, {RateOf(kRateFlow, 2)}) == "OK");
  g.h.Release(g.b, held);
  const std::vector<LateAnswer> late = g.h.core().TakeLateAnswers();
  REQUIRE(late.size() == 1);
  CHECK(late[0].all->refused_by == RefusedBy::kRate);
  CHECK(late[0].all->flow == kRateFlow);
  CHECK(g.h.core().books().tokens().size() == 0);
  CHECK(g.h.core().wait_queues().size() == 0);
}

TEST_CASE("a repeat under the same id gets the same tokens, and takes the rate once") {
  Gateway g;
  const auto first = g.Ask(g.a, {Token(), RateOf()}, 0, 42);
  const auto again = g.Ask(g.a, {RateOf(), Token()}, 0, 42);
  REQUIRE(again->status == TokenStatus::kOk);
  CHECK(again->tokens[1].id == first->tokens[0].id);
  CHECK(again->tokens[0].id == TokenId{});
  CHECK(g.Passed() == 1);
  CHECK(g.Said(g.a, {RateOf()}, 42) == "BAD_REQUEST request_id");
  // When the token has ended, the id stands for nothing: the group is a new one.
  g.h.Release(g.a, first->tokens[0].id);
  CHECK(g.Said(g.a, {Token(), RateOf()}, 42) == "OK");
  CHECK(g.Passed() == 2);
}

TEST_CASE("a group of rates alone has no tokens, so each repeat takes anew") {
  Gateway g;
  CHECK(g.Said(g.a, {RateOf()}, 42) == "OK");
  CHECK(g.Said(g.a, {RateOf()}, 42) == "OK");
  CHECK(g.Said(g.a, {RateOf()}, 42) == "BLOCKED rate in 2");
  g.h.core().SetDiskLow(true);
  g.h.Sleep(1000);
  CHECK(g.Said(g.a, {RateOf()}) == "OK");
  CHECK(g.Said(g.a, {RateOf(), Token()}) == "TOO_MANY_REQUEST disk_low");
}

TEST_CASE("the request decides: one flow may be asked for a token and a rate in one group") {
  Gateway g;
  CHECK(g.Said(g.a, {Token(kRateFlow), RateOf(kRateFlow)}) == "OK");
  CHECK(g.h.core().books().tokens().size() == 1);
  CHECK(g.Passed() == 1);
}

TEST_CASE("a rate of a group that can never pass is over the level, drained, or of no rule") {
  Gateway g;
  CHECK(g.Said(g.a, {Token(), RateOf(kRateFlow, 3)}) == "BLOCKED over_level in 2");
  CHECK(g.Said(g.a, {WithKey(RateOf(kKeyedRate, 3), "x")}) == "BLOCKED over_level of x in 4");
  CHECK(g.Said(g.a, {RateOf(kKeyedRate)}) == "BAD_REQUEST param in 4");
  CHECK(g.Said(g.a, {WithKey(RateOf(), "x")}) == "BAD_REQUEST param of x in 2");
  CHECK(g.Said(g.a, {RateOf(FlowId{9})}) == "NO_RULE_EXISTS in 9");
  REQUIRE(g.h.core().Drain(g.h.step(), kRateFlow, true, {}).ok());
  CHECK(g.Said(g.a, {Token(), RateOf()}) == "BLOCKED draining in 2");
  CHECK(g.h.core().books().tokens().size() == 0);
}

TEST_CASE("each rate of a group counts against the guard of its namespace") {
  CoreOptions options = testing::HarnessOptions();
  options.limits.namespace_qps_max = 3;
  Gateway g(options);
  CHECK(g.Said(g.a, {RateOf(), WithKey(RateOf(kKeyedRate), "x")}) == "OK");
  CHECK(g.Said(g.a, {RateOf(), WithKey(RateOf(kKeyedRate), "x")}) ==
        "TOO_MANY_REQUEST namespace_qps of x in 4");
  CHECK(g.Passed() == 1);
}

TEST_CASE("a prioritized group may borrow, and is told when its calls may be made") {
  Gateway g;
  REQUIRE(g.Said(g.a, {RateOf(kRateFlow, 2)}) == "OK");
  g.h.Sleep(900);
  const auto answer = g.Ask(g.a, {Token(), RateOf()}, 0, 0, /*prioritized=*/true);
  REQUIRE(answer->status == TokenStatus::kOk);
  CHECK(answer->tokens[0].id != TokenId{});
  CHECK(answer->tokens[1].hold_ms == 100);
}

TEST_CASE("shadow mode lets a group beyond its rate pass, and counts it") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1}, {.flow = 2, .count = 1, .shadow = true}});
  const SessionSlot a = h.Hello("a");
  for (int i = 0; i < 3; ++i) {
    const std::vector<AllItem> items = {RateOf()};
    CHECK(h.AskAll(a, {.items = items}, 1)->status == TokenStatus::kOk);
  }
  const Flow& flow = h.core().flows().at(h.core().flows().Find({kRateFlow}));
  CHECK(flow.counters.shadow_refused[static_cast<size_t>(RefusedBy::kRate)] == 2);
}

TEST_CASE("a group counts its rates as requests do, once granted or once refused") {
  Gateway g;
  REQUIRE(g.Said(g.a, {RateOf(kRateFlow, 2)}) == "OK");
  REQUIRE(g.Said(g.a, {RateOf()}) == "BLOCKED rate in 2");
  const RateState& rate = *g.h.core().books().rates().Find(g.h.core().flows().Find({kRateFlow}));
  CHECK(rate.counters.passed == 2);
  CHECK(rate.counters.requests_passed == 1);
  CHECK(rate.counters.blocked == 1);
  CHECK(rate.counters.requests_blocked == 1);
}

TEST_CASE("more values than a rule remembers do not keep a group from taking each") {
  CoreHarness h;
  ParamRule few;
  few.values_max = 2;
  Rule rule;
  rule.resource = "r";
  rule.flow_id = kKeyedRate;
  rule.count = 1;
  rule.threshold_type = ThresholdType::kGlobal;
  rule.param = few;
  h.InstallRules({rule});
  const SessionSlot a = h.Hello("a");
  const std::vector<AllItem> items = {WithKey(RateOf(kKeyedRate), "x"),
                                      WithKey(RateOf(kKeyedRate), "y"),
                                      WithKey(RateOf(kKeyedRate), "z")};
  CHECK(h.AskAll(a, {.items = items}, 1)->status == TokenStatus::kOk);
  const std::vector<AllItem> last = {items[2]};
  CHECK(h.AskAll(a, {.items = last}, 1)->refused_by == RefusedBy::kParam);
}

}  // namespace
}  // namespace nowcalls::core
