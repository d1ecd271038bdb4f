// Invariant 8: everything is bounded; what is full says so with a definite refusal.
#include <doctest/doctest.h>

#include "core/rules/rule_json.h"
#include "support/core_harness.h"
#include "support/only_flow.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;
using testing::RulesJson;

CoreOptions Tiny() {
  CoreOptions options = testing::HarnessOptions();
  options.limits.tokens_max = 3;
  options.limits.sessions_max = 2;
  options.limits.namespaces_max = 2;
  options.limits.rules_max = 3;
  return options;
}

TEST_CASE("beyond tokens_max an acquire is refused with TOO_MANY_REQUEST") {
  CoreHarness h(Tiny());
  h.Rules({{.flow = 1, .count = 100}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1, 30);
  h.Take(a, 1);
  const TokenId token = h.Take(a, 1);
  const AcquireAnswer answer = h.Acquire(a, 1);
  CHECK(answer.status == TokenStatus::kTooManyRequest);
  CHECK(answer.refused_by == RefusedBy::kTokenLimit);
  CHECK(answer.token_id.value == 0);
  CHECK(answer.now_calls == 32);
  CHECK(h.core()
            .flows()
            .at(OnlyFlow(h.core().flows(), 1))
            .counters.refused[static_cast<size_t>(RefusedBy::kTokenLimit)] == 1);
  h.Release(a, token);
  CHECK(h.Acquire(a, 1).status == TokenStatus::kOk);
}

TEST_CASE("while the disk is nearly full nothing is granted, and all else goes on") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 2}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1);
  const TokenId other = h.Take(a, 1);
  h.core().SetDiskLow(true);
  CHECK(h.Keep(a, other).status == TokenStatus::kOk);
  CHECK(h.Release(a, token) == TokenStatus::kReleaseOk);
  const AcquireAnswer answer = h.Acquire(a, 1);
  CHECK(answer.status == TokenStatus::kTooManyRequest);
  CHECK(answer.refused_by == RefusedBy::kDiskLow);
  CHECK(answer.token_id.value == 0);
  CHECK(answer.now_calls == 1);
  h.core().SetDiskLow(false);
  CHECK(h.Acquire(a, 1).status == TokenStatus::kOk);
}

TEST_CASE("while the disk is nearly full rules take so much of it, and can be removed") {
  CoreOptions options = testing::HarnessOptions();
  const uint64_t one = RuleToJson(*ParseRules(RulesJson({{.flow = 1}}))->rules.begin()).size();
  options.limits.rule_bytes_while_disk_low_max = 3 * one + 10;
  CoreHarness h(options);
  h.Rules({{.flow = 1}, {.flow = 2}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 2);
  const auto load = [&](const std::vector<testing::RuleOptions>& rules) {
    return testing::ReplaceRules(&h.core(), h.step(), "app", RulesJson(rules));
  };
  const auto drain = [&](int64_t flow) {
    return h.core().Drain(h.step(), FlowId{flow}, true, {}).status();
  };
  h.core().SetDiskLow(true);
  for (int i = 0; i < 100; ++i) REQUIRE(load({{.flow = 1}, {.flow = 2}}).ok());  // As they are.
  CHECK(load({{.flow = 1, .count = 5}, {.flow = 2}, {.flow = 3}}).ok());
  const Status more = load({{.flow = 1, .count = 6}, {.flow = 2}, {.flow = 3}, {.flow = 4}});
  CHECK(more.code() == StatusCode::kResourceExhausted);
  CHECK(more.message().starts_with("the disk of the ledger is nearly full (disk_free_low_bytes)"));
  CHECK(h.core().flows().rules() == 3);
  int drained = 0;
  while (drained < 3 && drain(drained + 1).ok()) ++drained;
  CHECK(drained == 1);
  CHECK(drain(2).code() == StatusCode::kResourceExhausted);
  CHECK(drain(1).ok());  // It is.
  CHECK(load({}).ok());
  CHECK_FALSE(load({{.flow = 2}}).ok());
  h.core().SetDiskLow(true);
  CHECK_FALSE(load({{.flow = 2}}).ok());
  h.core().SetDiskLow(false);
  h.core().SetDiskLow(true);
  CHECK(load({{.flow = 2}}).ok());
}

TEST_CASE("rules that are removed by RPC while tokens are out take of the room, too") {
  const std::string set = RulesJson({{.flow = 1}, {.flow = 2}});
  uint64_t set_bytes = 0;
  const Result<ParsedRules> parsed = ParseRules(set);
  for (const Rule& rule : parsed->rules) set_bytes += RuleToJson(rule).size();
  CoreOptions options = testing::HarnessOptions();
  options.limits.rule_bytes_while_disk_low_max = 4 * set_bytes;
  for (const bool tokens_are_out : {true, false}) {
    CAPTURE(tokens_are_out);
    CoreHarness h(options);
    const auto load = [&h](std::string_view json) {
      return testing::ReplaceRules(&h.core(), h.step(), "app", json).ok();
    };
    REQUIRE(load(set));
    const SessionSlot a = h.Hello("a");
    for (int64_t flow = 1; tokens_are_out && flow <= 2; ++flow) h.Take(a, flow);
    h.core().SetDiskLow(true);
    int loaded = 0;
    while (loaded < 100 && load("[]") && load(set)) ++loaded;
    CHECK(loaded == (tokens_are_out ? 2 : 4));
    CHECK(load("[]"));
  }
}

TEST_CASE("rules of files that change while the disk is nearly full leave the room for drains") {
  CoreOptions options = testing::HarnessOptions();
  options.limits.rule_bytes_while_disk_low_max = 2'000;
  CoreHarness h(options);
  const auto load = [&](const std::string& source, double count) {
    RuleSet set;
    set.name_space = "files";
    set.source = source;
    std::vector<testing::RuleOptions> rules;
    for (int64_t flow = 1; flow <= 50; ++flow) rules.push_back({.flow = flow, .count = count});
    set.parsed = *ParseRules(RulesJson(rules));
    return h.core().ReplaceRules(h.step(), {&set});
  };
  REQUIRE(load("file", 1).ok());
  h.core().SetDiskLow(true);
  for (int count = 2; count < 9; ++count) REQUIRE(load("file", count).ok());
  CHECK(h.core().Drain(h.step(), FlowId{1}, true, {}).ok());
}

TEST_CASE("a drain of a namespace that a full disk ends half-way is told in the log") {
  CoreOptions options = testing::HarnessOptions();
  options.limits.rule_bytes_while_disk_low_max = 800;
  CoreHarness h(options);
  h.Rules({{.flow = 1}, {.flow = 2}, {.flow = 3}, {.flow = 4}}, "app");
  h.NoticesText();
  h.core().SetDiskLow(true);
  const auto drained =
      h.core().DrainNamespace(h.step(), {.name_space = "app", .limit = 9}, true, {"peer", "why"});
  CHECK(drained.status().code() == StatusCode::kResourceExhausted);
  CHECK(h.NoticesText() == "administrator peer began to drain 1 rule of namespace app: why\n");
}

TEST_CASE("beyond sessions_max a new client is refused, one that is known is not") {
  CoreHarness h(Tiny());
  h.Rules({{.flow = 1, .count = 100, .client_offline_ms = 1000}});
  const SessionSlot a = h.Hello("a");
  const SessionSlot b = h.Hello("b");
  const Status full = h.core().Hello(h.step(), {"app", "c", "@x"}).status();
  CHECK(full.ToString() ==
        "resource_exhausted: the server holds 2 sessions already (sessions_max)");
  CHECK(h.core().Hello(h.step(), {"app", std::nullopt, "@x"}).status().code() ==
        StatusCode::kResourceExhausted);
  CHECK(h.Hello("a") == a);
  // An offline session with tokens counts; without, it does not.
  h.Take(b, 1);
  h.Goodbye(b);
  CHECK_FALSE(h.core().Hello(h.step(), {"app", "c", "@x"}).ok());
  h.Pass(1000);
  CHECK(h.core().Hello(h.step(), {"app", "c", "@x"}).ok());
}

TEST_CASE("beyond namespaces_max neither clients nor rules open a new one") {
  CoreHarness h(Tiny());
  h.Rules({{.flow = 1}}, "one");
  const SessionSlot a = h.Hello("a", "two");
  CHECK(h.core().Hello(h.step(), {"three", "a", "@x"}).status().ToString() ==
        "resource_exhausted: the server knows 2 namespaces already (namespaces_max)");
  CHECK(testing::ReplaceRules(&h.core(), h.step(), "three", "[]").ToString() ==
        "resource_exhausted: the set would make 3 namespaces; at most 2 are allowed "
        "(namespaces_max)");
  CHECK(testing::ReplaceRules(&h.core(), h.step(), "two", "[]").ok());
  h.Goodbye(a);
  CHECK(h.core().Hello(h.step(), {"three", "a", "@x"}).ok());
}

TEST_CASE("a refused hello leaves no namespace behind") {
  CoreHarness h(Tiny());
  h.Hello("a");
  h.Hello("b");
  CHECK_FALSE(h.core().Hello(h.step(), {"new", "c", "@x"}).ok());
  CHECK(h.core().flows().namespaces() == 1);
}

TEST_CASE("beyond rules_max, over all namespaces, a set is refused as a whole") {
  CoreHarness h(Tiny());
  h.Rules({{.flow = 1}, {.flow = 2}}, "one");
  h.Rules({{.flow = 3}}, "two");
  CHECK(testing::ReplaceRules(&h.core(), h.step(), "two", RulesJson({{.flow = 3}, {.flow = 4}}))
            .ToString() ==
        "resource_exhausted: the set would make 4 rules; at most 3 are allowed (rules_max)");
  CHECK(h.core().flows().rules() == 3);
  h.Rules({{.flow = 5}, {.flow = 6}}, "one");  // Replacing two by two.
  CHECK(h.core().flows().rules() == 3);
}

TEST_CASE("notices that nobody takes are bounded, and hide none of what administrators did") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1e6}});
  const SessionSlot a = h.Hello("a");
  h.core().TakeNotices();
  // Ten of the skipped rules are named, and the others counted, for each load that changes the set.
  std::string skipped;
  for (int i = 0; i < 12; ++i) skipped += R"(,{"resource":"local","clusterMode":false})";
  for (int i = 0; i < 300; ++i) {
    std::string json = RulesJson({{.flow = 1, .count = 1e6 + i + 1}});
    json.insert(json.rfind(']'), skipped);
    REQUIRE(testing::ReplaceRules(&h.core(), h.step(), "app", json).ok());
  }
  for (int i = 0; i < 3000; ++i) h.Reclaim(h.Take(a, 1));
  const auto notices = h.core().TakeNotices();
  size_t acts = 0;
  size_t sets = 0;
  for (const Notice& notice : notices) {
    acts += notice.text.starts_with("administrator ") ? 1 : 0;
    sets += notice.text.ends_with("1 new or changed, 0 removed, 12 skipped") ? 1 : 0;
  }
  CHECK(acts == 3000);
  CHECK(sets == 300);
  CHECK(notices.size() == 3000 + 300 + 1000 + 1);
  CHECK(notices.back().text == "2300 more notices at once are not shown");
  CHECK(notices.back().warning);
  CHECK(h.core().TakeNotices().empty());
}

}  // namespace
}  // namespace nowcalls::core
