// Calls a second: who may ask, what a limit is, what is counted and shown. What passes is compared
// with a model in rate_model_test.cc.
#include "core/rates/rates.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/limits.h"
#include "support/core_harness.h"
#include "support/only_flow.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;

// 10 calls in 1000 ms, of all sessions together.
Rule RateRule(int64_t flow = 1) {
  Rule rule;
  rule.resource = "db";
  rule.flow_id = FlowId{flow};
  rule.count = 10;
  rule.threshold_type = ThresholdType::kGlobal;
  return rule;
}

Rule ValueRule(ParamRule::Algorithm algorithm = ParamRule::Algorithm::kWindow) {
  Rule rule = RateRule();
  rule.param.emplace();
  rule.param->algorithm = algorithm;
  return rule;
}

RateAnswer Request(CoreHarness* h, int64_t count = 1, bool prioritized = false) {
  return h->core().rates().Request(h->step(),
                                   {.flow = FlowId{1}, .count = count, .prioritized = prioritized});
}

RateAnswer RequestValues(CoreHarness* h, const std::vector<std::string>& values,
                         int64_t count = 1) {
  std::vector<Param> params;
  for (const std::string& value : values) params.push_back({ParamType::kString, value});
  return h->core().rates().RequestParams(h->step(), FlowId{1}, count, params);
}

const Flow& TheFlow(CoreHarness* h) { return h->core().flows().at(OnlyFlow(h->core().flows(), 1)); }

const RateState& TheRate(CoreHarness* h) {
  return *h->core().books().rates().Find(OnlyFlow(h->core().flows(), 1));
}

uint64_t Refused(CoreHarness* h, RefusedBy limit) {
  return TheFlow(h).counters.refused[static_cast<size_t>(limit)];
}

TEST_CASE("a request for calls a second has an id above 0, a count of 1 to 2^31-1, and a rule") {
  CoreHarness h;
  h.InstallRules({RateRule()});
  const auto status = [&](int64_t flow, int64_t count) {
    return h.core().rates().Request(h.step(), {.flow = FlowId{flow}, .count = count}).status;
  };
  CHECK(status(0, 1) == TokenStatus::kBadRequest);
  CHECK(status(1, 0) == TokenStatus::kBadRequest);
  CHECK(status(1, kCountMax + 1) == TokenStatus::kBadRequest);
  CHECK(status(2, 1) == TokenStatus::kNoRuleExists);
  CHECK(status(1, kCountMax) == TokenStatus::kBlocked);
  CHECK(status(1, 10) == TokenStatus::kOk);
}

TEST_CASE("a rule with a parameter is asked by value, and no other rule is") {
  CoreHarness h;
  h.InstallRules({ValueRule()});
  CHECK(Request(&h).status == TokenStatus::kBadRequest);
  CHECK(Request(&h).refused_by == RefusedBy::kParam);
  CHECK(RequestValues(&h, {}).status == TokenStatus::kBadRequest);
  CHECK(RequestValues(&h, {std::string(kParamBytesMax, 'x')}).status == TokenStatus::kOk);
  CHECK(RequestValues(&h, {std::string(kParamBytesMax + 1, 'x')}).status ==
        TokenStatus::kBadRequest);
  h.InstallRules({RateRule()});
  CHECK(RequestValues(&h, {"a"}).status == TokenStatus::kBadRequest);
  CHECK(RequestValues(&h, {"a"}).refused_by == RefusedBy::kParam);
  CHECK(Request(&h).status == TokenStatus::kOk);
}

TEST_CASE("a window of ten seconds has ten times the calls a second, in one burst or spread") {
  CoreHarness h;
  Rule rule = RateRule();
  rule.window_interval_ms = 10'000;
  h.InstallRules({rule});
  CHECK(Request(&h, 100).status == TokenStatus::kOk);
  h.Sleep(8999);
  CHECK(Request(&h).status == TokenStatus::kBlocked);
  h.Sleep(1001);
  CHECK(Request(&h).status == TokenStatus::kOk);
  // sentinel-golang's threshold is that of the interval.
  rule.count_per_interval = true;
  h.InstallRules({rule});
  h.Sleep(20'000);
  CHECK(Request(&h, 11).status == TokenStatus::kBlocked);
  CHECK(Request(&h, 10).remaining == 0);
}

TEST_CASE("a prioritized request borrows from the next bucket, which has so much less") {
  CoreHarness h;
  Rule rule = RateRule();
  rule.window_interval_ms = 1000;
  rule.sample_count = 2;
  h.InstallRules({rule});
  REQUIRE(Request(&h, 10).status == TokenStatus::kOk);
  h.Sleep(500);
  CHECK(Request(&h).status == TokenStatus::kBlocked);
  // The first bucket with its ten calls leaves the window when the next begins.
  const RateAnswer later = Request(&h, 4, /*prioritized=*/true);
  CHECK(later.status == TokenStatus::kShouldWait);
  CHECK(later.wait_ms == 500);
  CHECK(Request(&h, 7, /*prioritized=*/true).status == TokenStatus::kBlocked);
  h.Sleep(500);
  CHECK(Request(&h, 7).status == TokenStatus::kBlocked);
  CHECK(Request(&h, 6).status == TokenStatus::kOk);
  CHECK(TheRate(&h).counters.borrowed == 4);
  CHECK(TheRate(&h).counters.passed == 16);
  CHECK(TheRate(&h).counters.blocked == 15);
  CHECK(TheRate(&h).counters.requests_passed == 3);
  CHECK(TheRate(&h).counters.requests_blocked == 3);
  CHECK(Refused(&h, RefusedBy::kRate) == 3);
}

TEST_CASE("AVG_LOCAL multiplies calls a second, and those of a value, by the sessions online") {
  CoreHarness h;
  Rule rule = RateRule();
  rule.threshold_type = ThresholdType::kAvgLocal;
  h.InstallRules({rule});
  CHECK(Request(&h).status == TokenStatus::kBlocked);
  h.Hello("a");
  h.Hello("b");
  CHECK(Request(&h, 20).status == TokenStatus::kOk);
  CHECK(Request(&h).status == TokenStatus::kBlocked);
  rule.param.emplace();
  rule.param->items = {{ParamValue(ParamType::kString, "vip"), 50}};
  h.InstallRules({rule});
  CHECK(RequestValues(&h, {"x"}, 20).remaining == 0);
  CHECK(RequestValues(&h, {"x"}).status == TokenStatus::kBlocked);
  CHECK(RequestValues(&h, {"vip"}, 100).status == TokenStatus::kOk);
  CHECK(RequestValues(&h, {"vip"}).status == TokenStatus::kBlocked);
}

TEST_CASE("the namespace's guard counts requests of all its rules, and none that it refuses") {
  CoreOptions options = testing::HarnessOptions();
  options.limits.namespace_qps_max = 3;
  CoreHarness h(options);
  h.InstallRules({RateRule(1), RateRule(2)});
  h.InstallRules({RateRule(3)}, "other");
  const auto ask = [&](int64_t flow) {
    return h.core().rates().Request(h.step(), {.flow = FlowId{flow}});
  };
  CHECK(ask(1).status == TokenStatus::kOk);
  CHECK(ask(2).status == TokenStatus::kOk);
  CHECK(ask(4).status == TokenStatus::kNoRuleExists);
  CHECK(Request(&h, 11).status == TokenStatus::kBlocked);
  for (int i = 0; i < 5; ++i) {
    CHECK(ask(1).status == TokenStatus::kTooManyRequest);
    CHECK(ask(1).refused_by == RefusedBy::kNamespaceQps);
  }
  CHECK(ask(3).status == TokenStatus::kOk);
  CHECK(Refused(&h, RefusedBy::kNamespaceQps) == 10);
  h.Sleep(1000);
  CHECK(ask(1).status == TokenStatus::kOk);
}

TEST_CASE("a namespace may have a guard of its own, and a changed one holds at once") {
  CoreOptions options = testing::HarnessOptions();
  options.limits.namespace_qps_max = 3;
  options.namespace_guards["own"] = 5;
  CoreHarness h(options);
  h.InstallRules({RateRule(1)}, "own");
  h.InstallRules({RateRule(2)}, "other");
  const auto passed = [&](int64_t flow) {
    int count = 0;
    while (h.core().rates().Request(h.step(), {.flow = FlowId{flow}}).status == TokenStatus::kOk) {
      ++count;
    }
    return count;
  };
  CHECK(passed(1) == 5);
  CHECK(passed(2) == 3);
  options.namespace_guards["own"] = 7;
  h.core().SetOptions(options);
  CHECK(passed(1) == 2);
  CHECK(passed(2) == 0);
  options.namespace_guards.clear();
  h.core().SetOptions(options);
  h.Sleep(1000);
  CHECK(passed(1) == 3);
}

TEST_CASE("shadow mode lets all pass, and counts exactly what the rule would have blocked") {
  CoreHarness h;
  Rule rule = RateRule();
  rule.shadow = true;
  h.InstallRules({rule});
  for (int second = 0; second < 3; ++second) {
    for (int i = 0; i < 15; ++i) CHECK(Request(&h).status == TokenStatus::kOk);
    h.Sleep(1000);
  }
  const auto rate = static_cast<size_t>(RefusedBy::kRate);
  CHECK(TheFlow(&h).counters.shadow_refused[rate] == 15);
  CHECK(TheFlow(&h).counters.refused[rate] == 0);
  CHECK(TheRate(&h).counters.passed == 45);
}

TEST_CASE("a drained rule lets no calls pass") {
  CoreHarness h;
  h.InstallRules({RateRule()});
  REQUIRE(h.core().Drain(h.step(), FlowId{1}, true, {}).ok());
  CHECK(Request(&h).refused_by == RefusedBy::kDraining);
  REQUIRE(h.core().Drain(h.step(), FlowId{1}, false, {}).ok());
  CHECK(Request(&h).status == TokenStatus::kOk);
}

TEST_CASE("all values of a request fit or none is counted, and one named twice counts twice") {
  CoreHarness h;
  h.InstallRules({ValueRule()});
  CHECK(RequestValues(&h, {"a"}, 8).remaining == 2);
  CHECK(RequestValues(&h, {"b", "a"}, 3).status == TokenStatus::kBlocked);
  CHECK(RequestValues(&h, {"b", "a"}, 3).refused_by == RefusedBy::kParam);
  CHECK(RequestValues(&h, {"b"}, 1).remaining == 9);
  CHECK(RequestValues(&h, {"b", "c"}, 9).remaining == -1);
  CHECK(RequestValues(&h, {"d", "d"}, 6).status == TokenStatus::kBlocked);
  CHECK(RequestValues(&h, {"d", "d"}, 5).status == TokenStatus::kOk);
  CHECK(RequestValues(&h, {"d"}, 1).status == TokenStatus::kBlocked);
}

TEST_CASE("a refusal for values names the one that is full, or that can never have so much") {
  CoreHarness h;
  h.InstallRules({ValueRule()});
  REQUIRE(RequestValues(&h, {"full"}, 10).status == TokenStatus::kOk);
  CHECK(RequestValues(&h, {"free", "other", "full", "full"}).value == 2U);
  CHECK(RequestValues(&h, {"free"}).value == std::nullopt);
  // That no wait helps is told first.
  const RateAnswer never = RequestValues(&h, {"full", "free", "free"}, 6);
  CHECK(never.refused_by == RefusedBy::kOverLevel);
  CHECK(never.value == 1U);
}

TEST_CASE("a request for more than the rule allows is over the level, whatever has passed") {
  CoreHarness h;
  h.InstallRules({RateRule()});
  CHECK(Request(&h, 11).refused_by == RefusedBy::kOverLevel);
  CHECK(Request(&h, 11, /*prioritized=*/true).refused_by == RefusedBy::kOverLevel);
  CHECK(Request(&h, 10).status == TokenStatus::kOk);
  CHECK(Request(&h, 10).refused_by == RefusedBy::kRate);
  for (const auto algorithm : {ParamRule::Algorithm::kWindow, ParamRule::Algorithm::kTokenBucket,
                               ParamRule::Algorithm::kLeakyBucket}) {
    CAPTURE(static_cast<int>(algorithm));
    CoreHarness by_value;
    Rule rule = ValueRule(algorithm);
    rule.max_queueing_time_ms = 0;
    by_value.InstallRules({rule});
    CHECK(RequestValues(&by_value, {"a"}, 11).refused_by == RefusedBy::kOverLevel);
    CHECK(RequestValues(&by_value, {"a"}, 10).status == TokenStatus::kOk);
    CHECK(RequestValues(&by_value, {"a"}, 10).refused_by == RefusedBy::kParam);
  }
}

TEST_CASE("values of different types are different values") {
  CoreHarness h;
  h.InstallRules({ValueRule()});
  const std::vector<ParamValue> fives = {{ParamType::kInt, {"\0\0\0\5", 4}},
                                         {ParamType::kLong, {"\0\0\0\0\0\0\0\5", 8}},
                                         {ParamType::kString, "5"},
                                         {ParamType::kByte, "\5"},
                                         {ParamType::kBoolean, "\5"},
                                         {ParamType::kShort, {"\0\5", 2}},
                                         {ParamType::kFloat, {"\0\0\0\5", 4}},
                                         {ParamType::kDouble, {"\0\0\0\0\0\0\0\5", 8}}};
  for (const ParamValue& five : fives) {
    const Param param = five.view();
    const auto ask = [&](int64_t count) {
      return h.core().rates().RequestParams(h.step(), FlowId{1}, count, {&param, 1}).status;
    };
    CHECK(ask(10) == TokenStatus::kOk);
    CHECK(ask(1) == TokenStatus::kBlocked);
  }
}

TEST_CASE("a rule remembers the values asked for last, as many as it says") {
  CoreHarness h;
  Rule rule = ValueRule();
  rule.param->values_max = 2;
  h.InstallRules({rule});
  RequestValues(&h, {"a"}, 10);
  RequestValues(&h, {"b"}, 10);
  CHECK(RequestValues(&h, {"a"}).status == TokenStatus::kBlocked);
  RequestValues(&h, {"c"}, 10);
  CHECK(RequestValues(&h, {"a"}).status == TokenStatus::kBlocked);
  CHECK(RequestValues(&h, {"b"}).status == TokenStatus::kOk);  // It had been forgotten.
  CHECK(TheRate(&h).values.list.size == 2);
  CHECK(h.core().books().rates().values().size() == 2);
}

TEST_CASE("a value that is forgotten while its limit is in use is counted, others are not") {
  CoreHarness h;
  Rule rule = ValueRule();
  rule.param->values_max = 2;
  h.InstallRules({rule});
  const auto forgotten = [&] {
    CHECK(h.core().books().rates().values().forgotten() == TheRate(&h).values.forgotten);
    return TheRate(&h).values.forgotten;
  };
  RequestValues(&h, {"a"}, 10);
  RequestValues(&h, {"b"}, 11);  // It gets nothing, so its window stays empty.
  RequestValues(&h, {"c"}, 1);
  CHECK(forgotten() == 1);  // "a", whose ten calls are in the window.
  RequestValues(&h, {"d"}, 1);
  CHECK(forgotten() == 1);  // "b"
  CHECK(RequestValues(&h, {"a"}, 10).status == TokenStatus::kOk);
  CHECK(forgotten() == 2);  // "c"
  h.Sleep(1000);
  RequestValues(&h, {"e"}, 1);
  RequestValues(&h, {"f"}, 1);
  CHECK(forgotten() == 2);  // Windows that have emptied.
  for (const auto algorithm :
       {ParamRule::Algorithm::kTokenBucket, ParamRule::Algorithm::kLeakyBucket}) {
    CoreHarness by_bucket;
    rule.param->algorithm = algorithm;
    by_bucket.InstallRules({rule});
    for (const char* value : {"a", "b", "c"}) RequestValues(&by_bucket, {value}, 10);
    CHECK(TheRate(&by_bucket).values.forgotten == 1);
  }
}

TEST_CASE("values that are idle for longer than the window are dropped, a few a request") {
  CoreHarness h;
  h.InstallRules({ValueRule()});
  for (int i = 0; i < 100; ++i) RequestValues(&h, {"value-" + std::to_string(i)});
  CHECK(TheRate(&h).values.list.size == 100);
  h.Sleep(60'001);  // `params` shows the last minute.
  for (int i = 0; i < 50; ++i) RequestValues(&h, {"again"});
  CHECK(TheRate(&h).values.list.size == 1);
}

CoreOptions WithValueBytes(size_t bytes_max) {
  CoreOptions options = testing::HarnessOptions();
  options.limits.param_value_bytes_max = bytes_max;
  return options;
}

TEST_CASE("where memory is short, values that are only shown go before limits in use") {
  CoreHarness h(WithValueBytes(100'000));
  Rule of_a_day = ValueRule();
  of_a_day.flow_id = FlowId{2};
  of_a_day.window_interval_ms = 86'400'000;
  of_a_day.count_per_interval = true;
  h.InstallRules({ValueRule(), of_a_day});
  const ParamValue spent(ParamType::kString, "spent");
  const Param param = spent.view();
  const auto ask = [&] {
    return h.core().rates().RequestParams(h.step(), FlowId{2}, 1, {&param, 1}).status;
  };
  while (ask() == TokenStatus::kOk) {
  }
  for (int i = 0; i < 1000; ++i) {
    h.Sleep(10);
    RequestValues(&h, {"value-" + std::to_string(i)});
  }
  CHECK(h.core().books().rates().values().forgotten() == 0);
  CHECK(ask() == TokenStatus::kBlocked);
}

TEST_CASE("all values together take so much memory at most, and the longest unused goes") {
  CoreHarness h(WithValueBytes(100'000));
  Rule other = ValueRule();
  other.flow_id = FlowId{2};
  h.InstallRules({ValueRule(), other});
  const ParamValue kept(ParamType::kString, "kept");
  const Param param = kept.view();
  const auto ask_other = [&](int64_t count) {
    return h.core().rates().RequestParams(h.step(), FlowId{2}, count, {&param, 1}).status;
  };
  CHECK(ask_other(10) == TokenStatus::kOk);
  for (int i = 0; i < 1000; ++i) {
    RequestValues(&h, {"a value of more than fifteen bytes: " + std::to_string(i)});
    REQUIRE(h.core().books().rates().values().bytes() <= 100'000);
    if (i < 100) REQUIRE(ask_other(1) == TokenStatus::kBlocked);
  }
  CHECK(TheRate(&h).values.list.size > 150);
  CHECK(ask_other(1) == TokenStatus::kOk);  // It had been forgotten.
  h.InstallRules({});
  CHECK(h.core().books().rates().values().size() == 0);
  CHECK(h.core().books().rates().values().bytes() == 0);
}

TEST_CASE("a new count holds at once for values that are remembered, and keeps what has passed") {
  CoreHarness h;
  Rule rule = ValueRule();
  h.InstallRules({rule});
  RequestValues(&h, {"a"}, 10);
  rule.count = 12;
  h.InstallRules({rule});
  CHECK(RequestValues(&h, {"a"}, 2).remaining == 0);
  rule.param->items = {{ParamValue(ParamType::kString, "a"), 13}};
  h.InstallRules({rule});
  CHECK(RequestValues(&h, {"a"}).remaining == 0);
  CHECK(RequestValues(&h, {"a"}).status == TokenStatus::kBlocked);
  // Windows of another form begin anew.
  rule.sample_count = 5;
  h.InstallRules({rule});
  CHECK(RequestValues(&h, {"a"}, 13).status == TokenStatus::kOk);
}

TEST_CASE("a token bucket has no more than a lowered count allows") {
  CoreHarness h;
  Rule rule = ValueRule(ParamRule::Algorithm::kTokenBucket);
  rule.count = 1000;
  rule.param->duration_ms = 3'600'000;
  h.InstallRules({rule});
  CHECK(RequestValues(&h, {"a"}, 1).remaining == 999);
  rule.count = 5;
  h.InstallRules({rule});
  CHECK(RequestValues(&h, {"a"}, 6).status == TokenStatus::kBlocked);
  CHECK(RequestValues(&h, {"a"}, 5).status == TokenStatus::kOk);
}

TEST_CASE("the window of a value has a hundred buckets at most") {
  CoreHarness h;
  Rule rule = ValueRule();
  rule.sample_count = 1000;
  h.InstallRules({rule});
  RequestValues(&h, {"a"});
  CHECK(h.core().books().rates().values().bytes() < 1200);
}

TEST_CASE("a leaky bucket spaces calls by less than a millisecond") {
  CoreHarness h;
  Rule rule = ValueRule(ParamRule::Algorithm::kLeakyBucket);
  rule.count = 4000;
  rule.max_queueing_time_ms = 10;
  h.InstallRules({rule});
  int64_t passed = 0;
  for (int ms = 0; ms < 3000; ++ms) {
    while (RequestValues(&h, {"a"}).status != TokenStatus::kBlocked) ++passed;
    h.Sleep(1);
  }
  // Four a millisecond, and those that wait within the next 10 ms.
  CHECK(passed >= 3000 * 4);
  CHECK(passed <= 3000 * 4 + 11 * 4);
}

TEST_CASE("a rule asked for the other kind than it says is served, counted, and logged once") {
  CoreHarness h;
  Rule tokens = RateRule();
  tokens.grade = 0;
  h.InstallRules({tokens});
  h.NoticesText();
  CHECK(Request(&h).status == TokenStatus::kOk);
  CHECK(
      h.NoticesText() ==
      "namespace app: the rule of flow 1 says calls in progress (grade 0), and is asked for calls "
      "a second: its count limits these\n");
  const SessionSlot session = h.Hello("a");
  h.Take(session, 1);
  CHECK(Request(&h).status == TokenStatus::kOk);
  CHECK(h.NoticesText() == "");
  CHECK(TheFlow(&h).counters.other_kind == 2);
  CHECK(h.core().flows().totals().other_kind == 2);

  Rule rate = RateRule();
  h.InstallRules({rate});
  h.NoticesText();
  h.Take(session, 1);
  CHECK(h.NoticesText() ==
        "namespace app: the rule of flow 1 says calls a second (grade 1, also the default), and is "
        "asked for tokens: its count is their level\n");
  h.Take(session, 1);
  CHECK(h.NoticesText() == "");
  CHECK(TheFlow(&h).counters.other_kind == 4);
}

TEST_CASE("calls a second write nothing into the batch") {
  CoreHarness h;
  h.InstallRules({RateRule()});
  h.Commit();
  for (int i = 0; i < 20; ++i) Request(&h, 1, /*prioritized=*/true);
  CHECK(h.batch().empty());
}

}  // namespace
}  // namespace nowcalls::core
