// The values of a parameter that are used most: their order, what is counted of them, and for how
// long.
#include "core/rates/top_values.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/prng.h"
#include "core/rates/rates.h"
#include "support/core_harness.h"
#include "support/only_flow.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;

// Each value has 10 calls a second, or 10 in progress.
Rule RuleByValue(ParamRule::Algorithm algorithm = ParamRule::Algorithm::kWindow) {
  Rule rule;
  rule.resource = "chat";
  rule.flow_id = FlowId{1};
  rule.count = 10;
  rule.threshold_type = ThresholdType::kGlobal;
  rule.param.emplace();
  rule.param->algorithm = algorithm;
  return rule;
}

class ByValue {
 public:
  explicit ByValue(const Rule& rule = RuleByValue()) {
    h.InstallRules({rule});
    session_ = h.Hello("a");
  }

  void Ask(std::string_view value, int64_t calls) {
    const Param param{ParamType::kString, value};
    h.core().rates().RequestParams(h.step(), FlowId{1}, calls, {&param, 1});
  }
  // Without room it waits.
  void Hold(std::string_view value, int64_t calls) {
    h.Ask(session_,
          {.flow = FlowId{1},
           .count = calls,
           .wait_ms = 1000,
           .param = Param{ParamType::kString, value}},
          ++tag_);
  }

  std::vector<ValueUse> Top(size_t limit) {
    return TopValues(h.core().books(), OnlyFlow(h.core().flows(), 1), limit, h.now().ms);
  }
  // "a 2 5/3": nowCalls, passed, blocked.
  std::string Text(const ValueUse& use) {
    const Books& books = h.core().books();
    const ParamValue& value = use.key != kNoKey ? books.flows().keys().at(use.key).value
                                                : books.rates().values().at(use.value).value;
    return value.bytes + " " + std::to_string(use.now_calls) + " " +
           std::to_string(use.recent.passed) + "/" + std::to_string(use.recent.blocked);
  }
  std::string TopText(size_t limit = 100) {
    std::string text;
    for (const ValueUse& use : Top(limit)) text += (text.empty() ? "" : ", ") + Text(use);
    return text;
  }

  CoreHarness h;

 private:
  SessionSlot session_;
  uint32_t tag_ = 0;
};

TEST_CASE("values with the most calls in progress come first, then those with the most a second") {
  ByValue f;
  CHECK(f.TopText().empty());
  f.Ask("few", 2);
  f.Ask("full", 10);
  f.Ask("hot", 10);
  f.Ask("hot", 7);
  f.Hold("held", 3);
  f.Hold("both", 3);
  f.Ask("both", 1);
  f.Hold("one", 1);
  CHECK(f.TopText() == "both 3 1/0, held 3 0/0, one 1 0/0, hot 0 10/7, full 0 10/0, few 0 2/0");
  CHECK(f.TopText(2) == "both 3 1/0, held 3 0/0");
  CHECK(f.TopText(1) == "both 3 1/0");
}

TEST_CASE("a value is one row, whatever asks for it, and none when nothing does") {
  ByValue f;
  f.Hold("a", 10);
  f.Hold("a", 1);  // Waits.
  f.Ask("a", 4);
  REQUIRE(f.Top(9).size() == 1);
  const ValueUse use = f.Top(9)[0];
  CHECK(f.Text(use) == "a 10 4/0");
  CHECK(f.h.core().flows().keys().at(use.key).lane.waiting() == 1);
  CHECK(f.h.core().flows().LevelOfValue(OnlyFlow(f.h.core().flows(), 1),
                                        {ParamType::kString, "unknown"}) == 10);
  f.h.Sleep(2000);
  CHECK(f.TopText() == "a 10 0/0");
  f.h.InstallRules({});
  CHECK(f.TopText() == "a 10 0/0");
}

TEST_CASE(
    "calls a second are shown for half the rule's interval at least, and a whole one at most") {
  using Algorithm = ParamRule::Algorithm;
  for (const auto algorithm :
       {Algorithm::kWindow, Algorithm::kTokenBucket, Algorithm::kLeakyBucket}) {
    CAPTURE(static_cast<int>(algorithm));
    Rule rule = RuleByValue(algorithm);
    rule.window_interval_ms = 4000;
    if (algorithm != Algorithm::kWindow) rule.param->duration_ms = 4000;
    rule.max_queueing_time_ms = 10'000;
    ByValue f(rule);
    f.h.Sleep(4000 - f.h.now().ms % 4000 + 1999);  // The end of the first half.
    f.Ask("a", 2);
    f.Ask("a", 1000);
    CHECK(f.TopText() == "a 0 2/1000");
    f.h.Sleep(1);
    f.Ask("a", 3);
    CHECK(f.TopText() == "a 0 5/1000");
    f.h.Sleep(1999);
    CHECK(f.TopText() == "a 0 5/1000");
    f.h.Sleep(1);
    CHECK(f.TopText() == "a 0 3/0");
    f.h.Sleep(2000);
    CHECK(f.TopText() == "a 0 0/0");  // It is one of the last minute.
    f.h.Sleep(60'000);
    CHECK(f.TopText().empty());
  }
}

TEST_CASE("the busiest values of the last minute are known beside those of the last interval") {
  ByValue f;
  f.h.Sleep(60'000 - f.h.now().ms % 60'000);
  for (int second = 0; second < 20; ++second) {
    f.Ask("steady", 8);
    f.Ask("greedy", 10);
    f.Ask("greedy", 10);
    f.h.Sleep(1000);
  }
  f.Ask("spike", 9);
  const auto by = [&](TopBy order) {
    std::string text;
    for (const ValueUse& use :
         TopValues(f.h.core().books(), OnlyFlow(f.h.core().flows(), 1), 9, f.h.now().ms, order)) {
      text += (text.empty() ? "" : ", ") + f.Text(use) + " " + std::to_string(use.minute.passed) +
              "/" + std::to_string(use.minute.blocked);
    }
    return text;
  };
  CHECK(by(TopBy::kInterval).starts_with("spike 0 9/0 9/0, "));
  CHECK(by(TopBy::kMinute) == "greedy 0 0/0 200/200, steady 0 0/0 160/0, spike 0 9/0 9/0");
  f.h.Sleep(39'000);  // The end of the minute, which is the end of its second half.
  CHECK(by(TopBy::kMinute) == "greedy 0 0/0 200/200, steady 0 0/0 160/0, spike 0 0/0 9/0");
  f.h.Sleep(1000);
  CHECK(by(TopBy::kMinute).empty());
}

TEST_CASE("the values of a minute take no more memory than a rule's values may have") {
  Rule rule = RuleByValue();
  rule.param->values_max = 100;
  ByValue f(rule);
  for (int i = 0; i < 1000; ++i) f.Ask("v" + std::to_string(i), 1);
  CHECK(f.h.core().books().rates().values().size() == 100);
  CHECK(f.Top(1000).size() == 100);
}

TEST_CASE(
    "a value named twice in a request counts twice, and of several values the full one is "
    "blocked") {
  ByValue f;
  const std::vector<Param> both = {{ParamType::kString, "a"}, {ParamType::kString, "b"}};
  const std::vector<Param> twice = {{ParamType::kString, "c"}, {ParamType::kString, "c"}};
  f.Ask("b", 8);
  f.h.core().rates().RequestParams(f.h.step(), FlowId{1}, 3, both);
  f.h.core().rates().RequestParams(f.h.step(), FlowId{1}, 3, twice);
  f.h.core().rates().RequestParams(f.h.step(), FlowId{1}, 3, twice);
  CHECK(f.TopText() == "b 0 8/3, c 0 6/6");
}

TEST_CASE("in shadow mode a value shows what the rule would have blocked") {
  Rule rule = RuleByValue();
  rule.shadow = true;
  ByValue f(rule);
  f.Ask("a", 10);
  f.Ask("a", 4);
  CHECK(f.TopText() == "a 0 10/4");
}

TEST_CASE("counts stop at what they can hold") {
  RecentCalls calls;
  for (int i = 0; i < 4; ++i) calls.Pass(1000, 1000, INT32_MAX);
  calls.Block(1500, 1000, 1);
  calls.Pass(1500, 1000, INT32_MAX);
  CHECK(calls.At(1500, 1000) == RecentCalls::Counts{UINT32_MAX, 1});
  // The shortest interval has halves of a millisecond.
  RecentCalls shortest;
  shortest.Pass(7, 1, 1);
  CHECK(shortest.At(8, 1).passed == 1);
  CHECK(shortest.At(9, 1).passed == 0);
}

TEST_CASE("the first of many values are those that sorting all of them brings to the front") {
  ByValue f;
  Prng random(41);
  for (int i = 0; i < 1000; ++i) {
    const std::string value = "v" + std::to_string(i);
    if (random.Below(2) == 0) f.Hold(value, 1 + static_cast<int64_t>(random.Below(10)));
    for (uint64_t n = random.Below(3); n > 0; --n) {
      f.Ask(value, 1 + static_cast<int64_t>(random.Below(10)));
    }
  }
  const std::vector<ValueUse> all = f.Top(1000);
  const auto rank = [](const ValueUse& use) {
    return std::tuple(use.now_calls, use.recent.passed, use.recent.blocked);
  };
  REQUIRE(all.size() > 700);
  CHECK(std::is_sorted(all.begin(), all.end(),
                       [&](const auto& a, const auto& b) { return rank(a) > rank(b); }));
  for (const size_t limit : {1, 2, 10, 100, 500}) {
    const std::vector<ValueUse> first = f.Top(limit);
    REQUIRE(first.size() == limit);
    for (size_t i = 0; i < limit; ++i) REQUIRE(f.Text(first[i]) == f.Text(all[i]));
  }
}

TEST_CASE("values of another flow are not listed") {
  ByValue f;
  Rule other = RuleByValue();
  other.flow_id = FlowId{2};
  f.h.InstallRules({RuleByValue(), other});
  const Param value{ParamType::kString, "b"};
  f.h.core().rates().RequestParams(f.h.step(), FlowId{2}, 1, {&value, 1});
  f.Ask("a", 1);
  f.Hold("held", 1);
  CHECK(f.TopText() == "held 1 0/0, a 0 1/0");
}

}  // namespace
}  // namespace nowcalls::core
