// Concurrency per value of a parameter: levels, queues, request ids and restarts of keys.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/rules/rule_json.h"
#include "support/core_harness.h"
#include "support/only_flow.h"

namespace nowcalls::core {
namespace {

using testing::AnswerText;
using testing::CoreHarness;
using testing::FindWrongBook;
using testing::RuleOptions;

// A text. `bytes` must outlive the parameter.
Param Text(std::string_view bytes) { return {ParamType::kString, bytes}; }

RuleOptions Keyed(double count, std::vector<ParamRule::Item> items = {}) {
  RuleOptions rule{
      .flow = 1, .count = count, .resource_timeout_ms = 100'000, .client_offline_ms = 100'000};
  rule.param.emplace();
  rule.param->items = std::move(items);
  return rule;
}

AcquireRequest Of(std::string_view value, int64_t count = 1) {
  return {.flow = FlowId{1}, .count = count, .param = Text(value)};
}

AcquireRequest WaitFor(std::string_view value, int64_t wait_ms = 1000) {
  return {.flow = FlowId{1}, .wait_ms = wait_ms, .param = Text(value)};
}

class KeyedFlow {
 public:
  explicit KeyedFlow(const RuleOptions& rule,
                     const CoreOptions& options = testing::HarnessOptions())
      : h(options) {
    h.Rules({rule});
    session = h.Hello("a");
  }

  std::string Ask(const AcquireRequest& request) { return AnswerText(AskFor(request)); }
  std::optional<AcquireAnswer> AskFor(const AcquireRequest& request) {
    return h.Ask(session, request, ++tag_);
  }
  TokenId Take(std::string_view value, int64_t count = 1) {
    const auto answer = AskFor(Of(value, count));
    REQUIRE(answer.has_value());
    REQUIRE(TokenStatusName(answer->status) == "OK");
    return answer->token_id;
  }
  size_t keys() { return h.core().flows().keys().size(); }
  void Restart() {
    h.Restart();
    session = h.Hello("a");
  }

 private:
  uint32_t tag_ = 0;

 public:
  CoreHarness h;
  SessionSlot session;
};

TEST_CASE("each value has the level for itself, and nowCalls of the flow is the sum") {
  KeyedFlow f(Keyed(2));
  CHECK(f.Ask(Of("alice")) == "OK 1/2");
  CHECK(f.Ask(Of("alice")) == "OK 2/2");
  CHECK(f.Ask(Of("alice")) == "BLOCKED param 2/2");
  CHECK(f.Ask(Of("bob", 2)) == "OK 2/2");
  CHECK(f.Ask(Of("carol", 3)) == "BLOCKED over_level 0/2");
  CHECK(f.h.NowCalls(1) == 4);
  CHECK(f.keys() == 2);
  CHECK(FindWrongBook(f.h.core()) == "");
}

TEST_CASE("a value is of its type: int 5, long 5 and the text 5 are three") {
  KeyedFlow f(Keyed(1));
  const std::string as_int("\0\0\0\5", 4);
  const std::string as_long("\0\0\0\0\0\0\0\5", 8);
  for (const Param& param : {Param{ParamType::kInt, as_int}, Param{ParamType::kLong, as_long},
                             Text("5"), Param{ParamType::kFloat, as_int}}) {
    AcquireRequest request{.flow = FlowId{1}, .param = param};
    CHECK(f.Ask(request) == "OK 1/1");
    CHECK(f.Ask(request) == "BLOCKED param 1/1");
  }
  CHECK(f.keys() == 4);
}

TEST_CASE("a value with an item has the item's level, which may be 0") {
  KeyedFlow f(Keyed(1, {{ParamValue(ParamType::kString, "vip"), 3},
                        {ParamValue(ParamType::kString, "banned"), 0},
                        {ParamValue(ParamType::kInt, std::string("\0\0\0\7", 4)), 2}}));
  CHECK(f.Ask(Of("vip", 3)) == "OK 3/3");
  CHECK(f.Ask(Of("banned")) == "BLOCKED over_level 0/0");
  CHECK(f.Ask(Of("7")) == "OK 1/1");
  const std::string seven("\0\0\0\7", 4);
  CHECK(f.Ask({.flow = FlowId{1}, .param = Param{ParamType::kInt, seven}}) == "OK 1/2");
  CHECK(f.Ask(Of("anybody", 2)) == "BLOCKED over_level 0/1");
  CHECK(f.keys() == 3);
}

TEST_CASE("under AVG_LOCAL the level of each value follows the sessions online") {
  RuleOptions rule = Keyed(2);
  rule.avg_local = true;
  KeyedFlow f(rule);
  f.Take("alice", 2);
  f.Take("bob", 2);
  CHECK(f.Ask(WaitFor("alice")) == "waits");
  CHECK(f.Ask(WaitFor("bob")) == "waits");
  const SessionSlot other = f.h.Hello("b");
  CHECK(f.h.LateText() == "3 OK, 4 OK");
  CHECK(f.Ask(Of("alice")) == "OK 4/4");
  f.h.Goodbye(other);
  CHECK(f.Ask(Of("alice")) == "BLOCKED param 4/2");
  CHECK(FindWrongBook(f.h.core()) == "");
}

TEST_CASE("an acquire has a parameter exactly if its rule has one") {
  KeyedFlow f(Keyed(2));
  CHECK(f.Ask({.flow = FlowId{1}}) == "BAD_REQUEST param 0/2");
  f.h.Rules({{.flow = 1, .count = 2}});
  CHECK(f.Ask(Of("alice")) == "BAD_REQUEST param 0/2");
  CHECK(f.keys() == 0);
}

TEST_CASE("a value exists while it has a token or a waiter") {
  KeyedFlow f(Keyed(1));
  const TokenId first = f.Take("alice");
  CHECK(f.Ask(WaitFor("alice", 500)) == "waits");
  const TokenId other = f.Take("bob");
  CHECK(f.keys() == 2);
  f.h.Release(f.session, other);
  CHECK(f.keys() == 1);
  f.h.Rules({Keyed(0)});  // Nobody is granted any more.
  f.h.Release(f.session, first);
  CHECK(f.keys() == 1);
  f.h.Pass(500);
  CHECK(f.h.LateText() == "2 BLOCKED queue_timeout");
  CHECK(f.keys() == 0);
  CHECK(FindWrongBook(f.h.core()) == "");
}

TEST_CASE("a full value never delays waiters of another") {
  CoreOptions options = testing::HarnessOptions();
  options.limits.waiters_per_rule_max = 2;
  KeyedFlow f(Keyed(1), options);
  f.Take("alice");
  const TokenId bob = f.Take("bob");
  for (int i = 0; i < 2; ++i) CHECK(f.Ask(WaitFor("alice")) == "waits");
  CHECK(f.Ask(WaitFor("alice")) == "BLOCKED queue_full 1/1");
  CHECK(f.Ask(WaitFor("bob")) == "waits");
  CHECK(f.Ask(Of("carol")) == "OK 1/1");
  f.h.Release(f.session, bob);
  CHECK(f.h.LateText() == "6 OK");
}

TEST_CASE("within a value waiters are served in their order, prioritized ones first") {
  KeyedFlow f(Keyed(1));
  TokenId held = f.Take("alice");
  CHECK(f.Ask(WaitFor("alice")) == "waits");
  AcquireRequest urgent = WaitFor("alice");
  urgent.prioritized = true;
  CHECK(f.Ask(urgent) == "waits");
  CHECK(f.Ask(Of("alice")) == "BLOCKED param 1/1");
  f.h.Release(f.session, held);
  CHECK(f.h.LateText() == "3 OK");
}

TEST_CASE("shadow mode counts what a value's level would refuse, and grants it") {
  RuleOptions rule = Keyed(1);
  rule.shadow = true;
  KeyedFlow f(rule);
  CHECK(f.Ask(Of("alice")) == "OK 1/1");
  CHECK(f.Ask(Of("alice")) == "OK 2/1");
  const Flow& flow = f.h.core().flows().at(OnlyFlow(f.h.core().flows(), 1));
  CHECK(flow.counters.shadow_refused[static_cast<size_t>(RefusedBy::kOverLevel)] == 0);
  CHECK(flow.counters.shadow_refused[static_cast<size_t>(RefusedBy::kParam)] == 1);
}

TEST_CASE("a drain refuses the waiters of all values") {
  KeyedFlow f(Keyed(1));
  f.Take("alice");
  f.Take("bob");
  CHECK(f.Ask(WaitFor("bob")) == "waits");
  CHECK(f.Ask(WaitFor("alice")) == "waits");
  REQUIRE(f.h.core().Drain(f.h.step(), FlowId{1}, true, {"test", ""}).ok());
  CHECK(f.h.LateText() == "4 BLOCKED draining, 3 BLOCKED draining");
  CHECK(f.Ask(Of("carol")) == "BLOCKED draining 0/1");
  CHECK(f.keys() == 2);
}

TEST_CASE("the server's bound on values refuses new ones, and no known one") {
  CoreOptions options = testing::HarnessOptions();
  options.limits.keys_max = 2;
  KeyedFlow f(Keyed(2), options);
  const TokenId alice = f.Take("alice");
  f.Take("bob");
  CHECK(f.Ask(Of("carol")) == "TOO_MANY_REQUEST key_limit 2/2");
  CHECK(f.Ask(WaitFor("carol")) == "TOO_MANY_REQUEST key_limit 2/2");
  CHECK(f.Ask(Of("bob")) == "OK 2/2");
  f.h.Release(f.session, alice);
  CHECK(f.Ask(Of("carol")) == "OK 1/2");
}

TEST_CASE("a full server and a low disk refuse a value as they do anybody") {
  CoreOptions options = testing::HarnessOptions();
  options.limits.tokens_max = 1;
  KeyedFlow f(Keyed(5), options);
  f.Take("alice");
  CHECK(f.Ask(Of("bob")) == "TOO_MANY_REQUEST token_limit 0/5");
  f.h.core().SetDiskLow(true);
  CHECK(f.Ask(Of("alice")) == "TOO_MANY_REQUEST disk_low 1/5");
  CHECK(f.keys() == 1);
}

TEST_CASE("the memory of values has the entries of those with waiters") {
  KeyedFlow f(Keyed(1));
  for (const char* value : {"alice", "bob"}) f.Take(value);
  const size_t before = f.h.core().flows().keys().MemoryBytes();
  CHECK(f.Ask(WaitFor("alice")) == "waits");
  const size_t with_one = f.h.core().flows().keys().MemoryBytes();
  CHECK(with_one > before);
  CHECK(f.Ask(WaitFor("bob")) == "waits");
  CHECK(f.h.core().flows().keys().MemoryBytes() - with_one == with_one - before);
}

TEST_CASE("a low disk ends the waits of a value, and the value with them") {
  KeyedFlow f(Keyed(1));
  const TokenId held = f.Take("alice");
  CHECK(f.Ask(WaitFor("alice")) == "waits");
  CHECK(f.Ask(WaitFor("alice")) == "waits");
  f.h.core().SetDiskLow(true);
  f.h.Release(f.session, held);
  CHECK(f.h.LateText() == "2 TOO_MANY_REQUEST disk_low, 3 TOO_MANY_REQUEST disk_low");
  CHECK(f.keys() == 0);
}

TEST_CASE("a request id stands for its value, and for no other") {
  KeyedFlow f(Keyed(1));
  AcquireRequest request = Of("alice");
  request.request_id = 7;
  const auto first = f.AskFor(request);
  CHECK(AnswerText(first) == "OK 1/1");
  CHECK(f.AskFor(request)->token_id == first->token_id);
  request.param = Text("bob");
  CHECK(f.Ask(request) == "BAD_REQUEST request_id 1/1");
  request.param.reset();
  CHECK(f.Ask(request) == "BAD_REQUEST request_id 1/1");
  AcquireRequest waits = WaitFor("alice");
  waits.request_id = 8;
  CHECK(f.Ask(waits) == "waits");
  waits.param = Text("bob");
  CHECK(f.Ask(waits) == "BAD_REQUEST request_id 1/1");
  waits.param = Text("alice");
  waits.wait_ms = 0;
  CHECK(f.Ask(waits) == "BLOCKED param 1/1");
  CHECK(f.h.LateText() == "5 BLOCKED superseded");
  CHECK(TokenStatusName(f.h.Cancel(f.session, 7)) == "RELEASE_OK");
  CHECK(f.keys() == 0);
}

TEST_CASE("a new count, and new items, hold for values with tokens and with waiters") {
  KeyedFlow f(Keyed(1));
  f.Take("alice");
  f.Take("vip");
  CHECK(f.Ask(WaitFor("vip")) == "waits");
  f.h.Rules({Keyed(1, {{ParamValue(ParamType::kString, "vip"), 2}})});
  CHECK(f.h.LateText() == "3 OK");
  CHECK(f.Ask(Of("alice")) == "BLOCKED param 1/1");
  f.h.Rules({Keyed(3)});
  CHECK(f.Ask(Of("alice")) == "OK 2/3");
  CHECK(f.Ask(Of("vip")) == "OK 3/3");
}

TEST_CASE("a rule that gets or loses its parameter refuses those who wait for what it was") {
  KeyedFlow f(Keyed(1));
  f.Take("alice");
  CHECK(f.Ask(WaitFor("alice")) == "waits");
  f.h.Rules({{.flow = 1, .count = 2, .resource_timeout_ms = 100'000}});
  CHECK(f.h.LateText() == "2 BAD_REQUEST param");
  // The token of the value counts under the rule that was.
  CHECK(f.Ask({.flow = FlowId{1}, .count = 2}) == "OK 2/2");
  CHECK(f.Ask({.flow = FlowId{1}, .wait_ms = 1000}) == "waits");
  f.h.Rules({Keyed(1)});
  CHECK(f.h.LateText() == "4 BAD_REQUEST param");
  CHECK(f.Ask(Of("alice")) == "BLOCKED param 1/1");
  CHECK(f.Ask(Of("bob")) == "OK 1/1");
  CHECK(FindWrongBook(f.h.core()) == "");
}

TEST_CASE("a removed rule lets values go with their tokens") {
  KeyedFlow f(Keyed(1));
  const TokenId held = f.Take("alice");
  CHECK(f.Ask(WaitFor("alice")) == "waits");
  f.h.Rules({});
  CHECK(f.h.LateText() == "2 NO_RULE_EXISTS");
  CHECK(f.keys() == 1);
  f.h.Release(f.session, held);
  CHECK(f.keys() == 0);
  CHECK(f.h.core().flows().size() == 0);
}

TEST_CASE("a flow that moves to another namespace refuses the waiters of its values") {
  RuleOptions rule = Keyed(1);
  rule.avg_local = true;
  KeyedFlow f(rule);
  const TokenId held = f.Take("alice");
  CHECK(f.Ask(WaitFor("alice")) == "waits");
  const RuleSet empty{.name_space = "app", .parsed = {}};
  RuleSet there{.name_space = "other", .parsed = ParseRules(testing::RulesJson({rule})).value()};
  testing::AddParam(rule, there.parsed.rules.data());
  REQUIRE(f.h.core().ReplaceRules(f.h.step(), {&empty, &there}).ToString() == "ok");
  f.h.Commit();
  CHECK(f.h.LateText() == "2 NO_RULE_EXISTS");
  CHECK(f.Ask(Of("bob")) == "BLOCKED over_level 0/0");  // Nobody of that namespace is online.
  f.h.Hello("b", "other");
  CHECK(FindWrongBook(f.h.core()) == "");
  f.h.Release(f.session, held);
  CHECK(f.h.LateText() == "");
}

TEST_CASE("tokens keep their values across a restart, in the ledger and in the history") {
  KeyedFlow f(Keyed(2));
  const TokenId held = f.Take("alice", 2);
  f.Take("bob");
  f.Take(std::string(1024, 'x'));
  const std::string before = testing::TokensText(f.h.core());
  f.Restart();
  CHECK(testing::TokensText(f.h.core()) == before);
  CHECK(FindWrongBook(f.h.core()) == "");
  CHECK(f.keys() == 3);
  CHECK(f.Ask(Of("alice")) == "BLOCKED param 2/2");
  CHECK(f.Ask(Of("bob")) == "OK 2/2");
  // A keep moves the token, with its value.
  f.h.Sleep(10);
  f.h.Keep(f.session, held);
  f.Restart();
  CHECK(f.Ask(Of("alice")) == "BLOCKED param 2/2");
  f.h.Reclaim(held);
  CHECK(f.Ask(Of("alice")) == "OK 1/2");
  const std::vector<ledger::HistoryEntry> ends = testing::HistoryOf(f.h.core());
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].param == ParamValue(ParamType::kString, "alice"));
}

TEST_CASE("tokens that time out or lose their client make room for their value alone") {
  KeyedFlow f(Keyed(1));
  f.Take("alice");
  const SessionSlot other = f.h.Hello("b");
  REQUIRE(f.h.Ask(other, Of("bob"), 90)->status == TokenStatus::kOk);
  CHECK(f.Ask(WaitFor("alice", 3'000'000)) == "waits");
  CHECK(f.Ask(WaitFor("bob", 3'000'000)) == "waits");
  f.h.Goodbye(other);
  f.h.Pass(101'000);
  CHECK(f.h.LateText() == "3 OK");
  f.h.Pass(200'000);
  CHECK(f.h.LateText() == "2 OK");
}

}  // namespace
}  // namespace nowcalls::core
