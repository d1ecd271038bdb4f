// A flow id with a rule of the flow and a rule by value: two flows with one number.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/grants/waiter_list.h"
#include "core/rates/rates.h"
#include "core/rules/rule_json.h"
#include "support/core_harness.h"

namespace nowcalls::core {
namespace {

using testing::AnswerText;
using testing::CoreHarness;
using testing::FindWrongBook;
using testing::ReadLedger;
using testing::RuleOptions;

constexpr FlowKey kOfFlow{FlowId{1}, FlowKind::kFlow};
constexpr FlowKey kByValue{FlowId{1}, FlowKind::kValue};

Param Text(std::string_view bytes) { return {ParamType::kString, bytes}; }

RuleOptions OfFlow(double count) {
  return {.flow = 1, .count = count, .resource_timeout_ms = 100'000, .client_offline_ms = 100'000};
}

RuleOptions ByValue(double count) {
  RuleOptions rule = OfFlow(count);
  rule.param.emplace();
  return rule;
}

// The two rules under one id, unless told otherwise, and a session.
class TwoKinds {
 public:
  explicit TwoKinds(const std::vector<RuleOptions>& rules = {OfFlow(1), ByValue(2)}) {
    h.Rules(rules);
    session = h.Hello("a");
  }

  // An empty value: none.
  std::string Ask(std::string_view value = "", int64_t wait_ms = 0) {
    return AnswerText(AskFor(value, wait_ms));
  }
  TokenId Take(std::string_view value = "") {
    const auto answer = AskFor(value, 0);
    REQUIRE(answer.has_value());
    REQUIRE(TokenStatusName(answer->status) == "OK");
    return answer->token_id;
  }
  const Flow& at(const FlowKey& key) {
    const FlowSlot slot = h.core().flows().Find(key);
    REQUIRE(slot != kNoFlow);
    return h.core().flows().at(slot);
  }
  bool Has(const FlowKey& key) { return h.core().flows().Find(key) != kNoFlow; }
  void Restart(uint32_t format_version = 0) {
    h.Restart(0, format_version);
    session = h.Hello("a");
  }
  // "app 1 of the flow, app 1 by value removed": the rules that the ledger has.
  std::string RulesInLedger() {
    std::string text;
    for (const ledger::RuleEntry& entry : ReadLedger(&h.store()).rules) {
      const Rule rule = *ParseRule(entry.json);
      text += (text.empty() ? "" : ", ") + entry.name_space + " " +
              std::to_string(entry.flow.value) +
              (rule.param.has_value() ? " by value" : " of the flow") +
              (ledger::IsInForce(entry.state) ? "" : " removed") +
              (entry.state == ledger::RuleState::kDraining ? " draining" : "");
    }
    return text;
  }
  // Their values, oldest first.
  std::vector<std::string> TokensOf(std::optional<int64_t> flow, std::optional<FlowKind> kind) {
    TokenFilter filter;
    if (flow) filter.flow = FlowId{*flow};
    filter.kind = kind;
    std::vector<std::string> values;
    const Result<TokenPage> page = h.core().ListTokens(h.now(), 1, filter, 100, 0);
    REQUIRE(page.ok());
    for (const TokenSlot slot : page->tokens) {
      const KeySlot key = h.core().books().tokens().KeyOf(slot);
      values.push_back(key == kNoKey ? "" : h.core().flows().keys().at(key).value.bytes);
    }
    return values;
  }

 private:
  std::optional<AcquireAnswer> AskFor(std::string_view value, int64_t wait_ms) {
    AcquireRequest request{.flow = FlowId{1}, .wait_ms = wait_ms};
    if (!value.empty()) request.param = Text(value);
    return h.Ask(session, request, ++tag_);
  }

  uint32_t tag_ = 0;

 public:
  CoreHarness h;
  SessionSlot session;
};

using Values = std::vector<std::string>;

TEST_CASE("a flow id has a level of the flow and one of each value, and they share no token") {
  TwoKinds t;
  CHECK(t.Ask() == "OK 1/1");
  CHECK(t.Ask() == "BLOCKED level 1/1");
  CHECK(t.Ask("x") == "OK 1/2");
  CHECK(t.Ask("x") == "OK 2/2");
  CHECK(t.Ask("x") == "BLOCKED param 2/2");
  CHECK(t.Ask("y") == "OK 1/2");
  CHECK(t.at(kOfFlow).lane.now_calls == 1);
  CHECK(t.at(kByValue).lane.now_calls == 3);
  CHECK(t.at(kOfFlow).counters.refused[static_cast<size_t>(RefusedBy::kLevel)] == 1);
  CHECK(t.at(kByValue).counters.refused[static_cast<size_t>(RefusedBy::kParam)] == 1);
  CHECK(t.h.core().flows().rules() == 2);
  CHECK(FindWrongBook(t.h.core()).empty());
}

TEST_CASE("a release under one rule of a flow id wakes its own waiters alone") {
  TwoKinds t({OfFlow(1), ByValue(1)});
  const TokenId of_flow = t.Take();
  const TokenId of_value = t.Take("x");  // Tags 1 and 2.
  CHECK(t.Ask("", 1000) == "waits");     // 3
  CHECK(t.Ask("x", 1000) == "waits");    // 4
  CHECK(t.Ask("y", 1000) == "OK 1/1");   // 5
  CHECK(t.at(kOfFlow).lane.waiting() == 1);
  CHECK(t.at(kByValue).lane.waiting() == 0);
  t.h.Release(t.session, of_value);
  CHECK(t.h.LateText() == "4 OK");
  t.h.Release(t.session, of_flow);
  CHECK(t.h.LateText() == "3 OK");
  const auto waiting = [&](const WaiterFilter& filter) {
    return ListWaiters(t.h.core().books(), t.h.core().wait_queues(), filter, 100).size();
  };
  CHECK(t.Ask("", 1000) == "waits");
  CHECK(t.Ask("x", 1000) == "waits");
  CHECK(t.Ask("y", 1000) == "waits");
  CHECK(waiting({.flow = FlowId{1}}) == 3);
  CHECK(waiting({.flow = FlowId{1}, .kind = FlowKind::kFlow}) == 1);
  CHECK(waiting({.kind = FlowKind::kValue}) == 2);
}

TEST_CASE("levels by session wake the waiters of both rules of a flow id") {
  RuleOptions of_flow = OfFlow(1);
  RuleOptions by_value = ByValue(1);
  of_flow.avg_local = by_value.avg_local = true;
  TwoKinds t({of_flow, by_value});
  t.Take();
  t.Take("x");
  CHECK(t.Ask("", 1000) == "waits");
  CHECK(t.Ask("x", 1000) == "waits");
  t.h.Hello("b");
  CHECK(t.h.LateText() == "3 OK, 4 OK");
}

TEST_CASE("calls a second of the flow and of its values have windows of their own") {
  TwoKinds t;
  Rates& rates = t.h.core().rates();
  const auto request = [&] {
    return rates.Request(t.h.step(), {.flow = FlowId{1}, .count = 1}).status;
  };
  const auto request_value = [&](std::string_view value) {
    const Param param = Text(value);
    return rates.RequestParams(t.h.step(), FlowId{1}, 1, {&param, 1}).status;
  };
  CHECK(request() == TokenStatus::kOk);
  CHECK(request() == TokenStatus::kBlocked);
  CHECK(request_value("x") == TokenStatus::kOk);
  CHECK(request_value("x") == TokenStatus::kOk);
  CHECK(request_value("x") == TokenStatus::kBlocked);
  CHECK(request_value("y") == TokenStatus::kOk);
}

TEST_CASE("where a flow id has one rule, a request of the other kind is told so") {
  SUBCASE("of the flow") {
    TwoKinds t({OfFlow(1)});
    CHECK(t.Ask("x") == "BAD_REQUEST param 0/1");
    CHECK(t.at(kOfFlow).counters.refused[static_cast<size_t>(RefusedBy::kParam)] == 1);
  }
  SUBCASE("by value") {
    TwoKinds t({ByValue(1)});
    CHECK(t.Ask() == "BAD_REQUEST param 0/1");
    const auto asked = t.h.core().rates().Request(t.h.step(), {.flow = FlowId{1}, .count = 1});
    CHECK(asked.status == TokenStatus::kBadRequest);
    CHECK(asked.refused_by == RefusedBy::kParam);
  }
  SUBCASE("none") {
    TwoKinds t(std::vector<RuleOptions>{});
    CHECK(t.Ask() == "NO_RULE_EXISTS 0/0");
    CHECK(t.Ask("x") == "NO_RULE_EXISTS 0/0");
  }
}

TEST_CASE(
    "two rules of one kind under one flow id are refused in a set, two of two kinds are not") {
  const auto refusal = [](const std::vector<RuleOptions>& rules) {
    return ParseRules(testing::RulesJson(rules)).status().message();
  };
  CHECK(refusal({OfFlow(1), ByValue(1)}).empty());
  CHECK(refusal({ByValue(1), OfFlow(1)}).empty());
  CHECK(refusal({OfFlow(1), ByValue(1), OfFlow(2)}).ends_with("flowId appears twice in this set"));
  CHECK(refusal({ByValue(1), OfFlow(1), ByValue(2)})
            .ends_with("flowId appears twice in this set, in two rules by value"));
}

TEST_CASE("a drain of a namespace in pieces of one rule takes both rules of a flow id, once") {
  TwoKinds t;
  t.Take();
  t.Take("x");
  const auto drained =
      t.h.core().DrainNamespace(t.h.step(), {.name_space = "app", .limit = 1}, true, {});
  REQUIRE(drained.ok());
  CHECK(drained->rules == 2);
  CHECK(drained->tokens == 2);
  CHECK(drained->next_flow == 0);
  CHECK(t.at(kOfFlow).draining);
  CHECK(t.at(kByValue).draining);
}

TEST_CASE("what acts on a flow id of two namespaces must say which kind is meant") {
  TwoKinds t({OfFlow(1)});
  REQUIRE(testing::ReplaceRules(&t.h.core(), t.h.step(), "other", testing::RulesJson({ByValue(1)}))
              .ok());
  t.Take();
  t.Take("x");
  const std::string refusal =
      "flow_id 1 has a rule of the flow in namespace app and a rule by value in namespace other: "
      "say which is meant with kind flow or value";
  core::Core& core = t.h.core();
  CHECK(core.Drain(t.h.step(), {FlowId{1}}, true, {}).status().message() == refusal);
  CHECK(core.ReclaimFlow(t.h.step(), {FlowId{1}}, 9, {}).status().message() == refusal);
  CHECK(core.Purge(t.h.step(), {FlowId{1}}, 9, {}).status().message() == refusal);
  CHECK(core.Drain(t.h.step(), {FlowId{1}, FlowKind::kFlow}, true, {}).ok());
  CHECK_FALSE(t.at(kByValue).draining);
  CHECK(core.ReclaimFlow(t.h.step(), {FlowId{1}, FlowKind::kValue}, 9, {})->reclaimed == 1);
}

TEST_CASE("a rule that goes while the other of its flow id stays is warned of") {
  TwoKinds t;
  t.h.NoticesText();
  t.h.Rules({ByValue(2)}, "app");
  CHECK(t.h.NoticesText().find(
            "1 rule in force removed: acquires under it answer NO_RULE_EXISTS or, "
            "beside a rule of the other kind, BAD_REQUEST, for which Sentinel's clients let "
            "calls pass") != std::string::npos);
}

TEST_CASE("a flow id belongs to one namespace for each kind of rule") {
  TwoKinds t({OfFlow(1)});
  const auto load = [&](const std::vector<RuleOptions>& rules) {
    return testing::ReplaceRules(&t.h.core(), t.h.step(), "other", testing::RulesJson(rules));
  };
  CHECK(load({OfFlow(1)}).message().find("flowId 1 belongs to namespace app") != std::string::npos);
  CHECK(load({OfFlow(1), ByValue(1)}).code() == StatusCode::kAlreadyExists);
  CHECK(load({ByValue(1)}).ok());
  CHECK(testing::ReplaceRules(&t.h.core(), t.h.step(), "app",
                              testing::RulesJson({OfFlow(1), ByValue(1)}))
            .message()
            .find("rule by value of resource 'r1': clusterConfig.flowId 1 belongs to "
                  "namespace other") != std::string::npos);
  t.h.Commit();
  CHECK(t.RulesInLedger() == "app 1 of the flow, other 1 by value");
  t.Restart();
  CHECK(t.Ask() == "OK 1/1");
  CHECK(t.Ask("x") == "OK 1/1");
}

TEST_CASE("a crash keeps both rules of a flow id and the tokens of each") {
  TwoKinds t;
  const TokenId of_flow = t.Take();
  const TokenId of_value = t.Take("x");
  const std::string tokens = testing::TokensText(t.h.core());
  CHECK(t.RulesInLedger() == "app 1 of the flow, app 1 by value");
  t.Restart();
  CHECK(testing::TokensText(t.h.core()) == tokens);
  CHECK(t.at(kOfFlow).lane.now_calls == 1);
  CHECK(t.at(kByValue).lane.now_calls == 1);
  CHECK(t.Ask() == "BLOCKED level 1/1");
  CHECK(t.Ask("x") == "OK 2/2");
  CHECK(t.h.Release(t.session, of_flow) == TokenStatus::kReleaseOk);
  CHECK(t.h.Release(t.session, of_value) == TokenStatus::kReleaseOk);
  CHECK(FindWrongBook(t.h.core()).empty());
}

TEST_CASE("removing one rule of a flow id leaves the other, in the ledger too") {
  TwoKinds t;
  SUBCASE("without tokens") {
    t.h.Rules({ByValue(2)});
    CHECK_FALSE(t.Has(kOfFlow));
    CHECK(t.RulesInLedger() == "app 1 by value");
    t.Restart();
    CHECK(t.Ask("x") == "OK 1/2");
    CHECK(t.Ask() == "BAD_REQUEST param 1/2");
  }
  SUBCASE("with tokens of it, until the last has ended") {
    const TokenId token = t.Take("x");
    t.h.Rules({OfFlow(1)});
    CHECK(t.RulesInLedger() == "app 1 of the flow, app 1 by value removed");
    t.Restart();
    CHECK(t.Ask("x") == "BAD_REQUEST param 0/1");
    CHECK(t.h.Release(t.session, token) == TokenStatus::kReleaseOk);
    CHECK_FALSE(t.Has(kByValue));
    CHECK(t.RulesInLedger() == "app 1 of the flow");
  }
  SUBCASE("both") {
    t.h.Rules({});
    CHECK(t.RulesInLedger().empty());
    CHECK(ReadLedger(&t.h.store()).namespaces.empty());
  }
}

TEST_CASE("each rule of a flow id moves to another namespace by itself") {
  TwoKinds t;
  t.Take();
  t.Take("x");
  const auto load = [&](const std::vector<RuleOptions>& app,
                        const std::vector<RuleOptions>& other) {
    std::vector<RuleSet> sets(2);
    sets[0].name_space = "app";
    sets[1].name_space = "other";
    for (size_t i = 0; i < 2; ++i) {
      const auto& rules = i == 0 ? app : other;
      ParsedRules parsed = *ParseRules(testing::RulesJson(rules));
      for (size_t r = 0; r < rules.size(); ++r) testing::AddParam(rules[r], &parsed.rules[r]);
      sets[i].parsed = std::move(parsed);
    }
    REQUIRE(t.h.core().ReplaceRules(t.h.step(), RefsTo(sets)).ToString() == "ok");
    t.h.Commit();
  };
  load({OfFlow(1)}, {ByValue(2)});
  CHECK(t.RulesInLedger() == "app 1 of the flow, other 1 by value");
  load({ByValue(2)}, {OfFlow(1)});
  CHECK(t.RulesInLedger() == "app 1 by value, other 1 of the flow");
  load({}, {OfFlow(1), ByValue(2)});
  CHECK(t.RulesInLedger() == "other 1 of the flow, other 1 by value");
  t.Restart();
  CHECK(t.Ask() == "BLOCKED level 1/1");
  CHECK(t.Ask("x") == "OK 2/2");
}

TEST_CASE("a rule that gets a parameter is another rule, and tokens of the first stay with it") {
  TwoKinds t({OfFlow(1)});
  const TokenId token = t.Take();
  CHECK(t.Ask("", 1000) == "waits");
  t.h.Rules({ByValue(1)});
  CHECK(t.h.LateText() == "2 BAD_REQUEST param");
  CHECK(t.RulesInLedger() == "app 1 of the flow removed, app 1 by value");
  CHECK(t.Ask("x") == "OK 1/1");
  CHECK(t.at(kOfFlow).removed);
  t.Restart();
  CHECK(t.at(kOfFlow).lane.now_calls == 1);
  t.h.Rules({OfFlow(1), ByValue(1)});
  CHECK(t.Ask() == "BLOCKED level 1/1");
  CHECK(t.h.Release(t.session, token) == TokenStatus::kReleaseOk);
  CHECK(t.Ask() == "OK 1/1");
}

TEST_CASE("a drain stops both rules of a flow id, or the one that is named") {
  TwoKinds t;
  t.Take();
  t.Take("x");
  const auto drain = [&](std::optional<FlowKind> kind, bool on) {
    const DrainAnswer answer = *t.h.core().Drain(t.h.step(), {FlowId{1}, kind}, on, {"test", ""});
    t.h.Commit();
    return std::string(TokenStatusName(answer.status)) + " " + std::to_string(answer.now_calls) +
           " " + std::to_string(answer.tokens);
  };
  CHECK(drain(FlowKind::kValue, true) == "OK 1 1");
  CHECK(t.Ask("y") == "BLOCKED draining 0/2");
  CHECK(t.Ask() == "BLOCKED level 1/1");
  CHECK(t.RulesInLedger() == "app 1 of the flow, app 1 by value draining");
  CHECK(drain(std::nullopt, true) == "OK 2 2");
  CHECK(t.RulesInLedger() == "app 1 of the flow draining, app 1 by value draining");
  t.Restart();
  CHECK(t.Ask() == "BLOCKED draining 1/1");
  CHECK(drain(FlowKind::kFlow, false) == "OK 1 1");
  CHECK(t.Ask("y") == "BLOCKED draining 0/2");
  CHECK(drain(std::nullopt, false) == "OK 2 2");
  CHECK(t.Ask("y") == "OK 1/2");
  t.h.Rules({OfFlow(1)});
  CHECK(drain(FlowKind::kValue, true) == "NO_RULE_EXISTS 0 0");
}

TEST_CASE("tokens of a flow id are taken back of both rules, or of the one that is named") {
  TwoKinds t({OfFlow(5), ByValue(5)});
  const auto reclaim = [&](std::optional<FlowKind> kind, uint32_t most) {
    const auto answer =
        t.h.core().ReclaimFlow(t.h.step(), {FlowId{1}, kind}, most, {"test", "why"});
    t.h.Commit();
    REQUIRE(answer.ok());
    return std::to_string(answer->reclaimed) + (answer->more ? " and more" : "");
  };
  for (int i = 0; i < 2; ++i) t.Take();
  for (int i = 0; i < 3; ++i) t.Take("x");
  CHECK(reclaim(FlowKind::kValue, 2) == "2 and more");
  CHECK(t.at(kOfFlow).lane.now_calls == 2);
  CHECK(reclaim(std::nullopt, 2) == "2 and more");
  CHECK(t.at(kOfFlow).lane.now_calls == 0);
  CHECK(reclaim(std::nullopt, 2) == "1");
  CHECK(t.h.NoticesText().find("reclaimed 2 tokens of flow 1 by value: why") != std::string::npos);
  t.h.Rules({OfFlow(5)});
  const auto none =
      t.h.core().ReclaimFlow(t.h.step(), {FlowId{1}, FlowKind::kValue}, 1, {"test", "why"});
  CHECK(none.status().message() == "flow_id 1 has neither a rule of kind value nor tokens of one");
}

TEST_CASE("a purge takes the tokens of a removed rule and leaves those of the rule in force") {
  TwoKinds t({OfFlow(5), ByValue(5)});
  t.Take();
  t.Take("x");
  t.h.Rules({OfFlow(5)});
  const auto purge = [&](std::optional<FlowKind> kind) {
    const auto answer = t.h.core().Purge(t.h.step(), {FlowId{1}, kind}, 100, {"test", ""});
    t.h.Commit();
    return answer.ok() ? std::to_string(answer->reclaimed) : answer.status().message();
  };
  CHECK(purge(FlowKind::kFlow).find("has a rule in force") != std::string::npos);
  CHECK(purge(std::nullopt) == "1");
  CHECK_FALSE(t.Has(kByValue));
  CHECK(t.at(kOfFlow).lane.now_calls == 1);
}

TEST_CASE("the tokens of a flow id are listed by age over both rules, or those of one") {
  TwoKinds t({OfFlow(5), ByValue(5)});
  for (const char* value : {"x", "", "y", ""}) t.Take(value);
  CHECK(t.TokensOf(1, {}) == Values{"x", "", "y", ""});
  CHECK(t.TokensOf(1, FlowKind::kFlow) == Values{"", ""});
  CHECK(t.TokensOf(1, FlowKind::kValue) == Values{"x", "y"});
  CHECK(t.TokensOf({}, FlowKind::kValue) == Values{"x", "y"});
  CHECK(t.TokensOf(2, {}).empty());
}

TEST_CASE("a group may ask both rules of a flow id") {
  TwoKinds t({OfFlow(1), ByValue(1)});
  const std::vector<AllItem> items = {{.flow = FlowId{1}}, {.flow = FlowId{1}, .param = Text("x")}};
  const auto granted = t.h.AskAll(t.session, {.items = items, .request_id = 5}, 1);
  REQUIRE(granted.has_value());
  CHECK(granted->tokens.size() == 2);
  CHECK(t.at(kOfFlow).lane.now_calls == 1);
  CHECK(t.at(kByValue).lane.now_calls == 1);
  const auto again = t.h.AskAll(t.session, {.items = items, .request_id = 5}, 2);
  CHECK(again->tokens.front().id == granted->tokens.front().id);
  CHECK(t.h.Cancel(t.session, 5) == TokenStatus::kReleaseOk);
  t.Take("x");
  CHECK(t.h.AskAll(t.session, {.items = items}, 3)->refused_by == RefusedBy::kParam);
  CHECK(t.at(kOfFlow).lane.now_calls == 0);
}

// A ledger of format 3 whose flow has tokens with and without a value under one rule: it changed
// its kind while tokens were out.
class FormatThree : public TwoKinds {
 public:
  // As format 3 had it: the rule of the flow alone, without the removed one by value.
  FormatThree() : TwoKinds({ByValue(5)}) {
    Take("x");
    h.Rules({OfFlow(5)});
    h.Commit();
    const auto rules = ReadLedger(&h.store()).rules;
    REQUIRE(rules.size() == 2);
    h.batch().RuleSet(rules.front());
    h.Commit();
    CHECK(RulesInLedger() == "app 1 of the flow");
  }
};

TEST_CASE("a ledger of format 3 with tokens of both kinds under one rule goes on") {
  FormatThree t;
  t.Take();
  t.h.batch().Clear();
  t.Restart(3);
  CHECK(t.at(kByValue).removed);
  CHECK(t.at(kByValue).lane.now_calls == 1);
  CHECK(t.at(kOfFlow).lane.now_calls == 1);
  CHECK(t.at(kByValue).client_offline_time_ms == 100'000);
  t.h.Commit();
  CHECK(t.RulesInLedger() == "app 1 of the flow, app 1 by value removed");
  t.Restart();
  CHECK(t.h.core().ReclaimFlow(t.h.step(), {FlowId{1}, FlowKind::kValue}, 9, {"t", "w"}).ok());
  t.h.Commit();
  CHECK(t.RulesInLedger() == "app 1 of the flow");
}

TEST_CASE("a removed rule of format 3 whose tokens are all of the other kind leaves the ledger") {
  FormatThree t;
  auto entry = ReadLedger(&t.h.store()).rules.front();
  entry.state = ledger::RuleState::kRemoved;
  t.h.batch().RuleSet(entry);
  t.h.batch().NamespaceRemoved("app");
  t.h.Commit();
  t.Restart(3);
  t.h.Commit();
  CHECK(t.RulesInLedger() == "app 1 by value removed");
  CHECK_FALSE(t.Has(kOfFlow));
  t.Restart();
  CHECK(t.at(kByValue).lane.now_calls == 1);
}

TEST_CASE("from format 4 on a token without a rule of its kind is damage") {
  FormatThree t;
  Core core(testing::HarnessOptions());
  CHECK(testing::LoadCore(&t.h.store(), t.h.now(), &core).message() ==
        "flow 1 by value has tokens, but its rule is missing");
}

}  // namespace
}  // namespace nowcalls::core
