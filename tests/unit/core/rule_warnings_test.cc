// What is said of a valid rule that its author may not expect.
#include "core/rules/rule_warnings.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/rules/rule_amount.h"
#include "unit/core/rule_parsing.h"

namespace nowcalls::core {
namespace {

using nlohmann::json;
using Warnings = std::vector<std::string>;

json FlowRule() {
  return json::parse(R"({"resource":"r","grade":1,"count":5,"clusterMode":true,
                         "clusterConfig":{"flowId":1,"thresholdType":1}})");
}

json HotspotRule() {
  return json::parse(R"({"resource":"r","metricType":1,"paramIndex":0,"threshold":5,
    "durationInSec":1,"clusterConfig":{"flowId":1,"thresholdType":1}})");
}

json GoFlowRule() {
  return json::parse(R"({"resource":"r","statIntervalInMs":1000,"threshold":5,
                         "clusterConfig":{"flowId":1,"thresholdType":1}})");
}

json ParamFlowRule() {
  json rule = FlowRule();
  rule["paramIdx"] = 0;
  return rule;
}

// What is warned of, without the place.
Warnings WarningsOf(const json& rule) {
  Warnings warnings = RemarksOn(rule.dump());
  for (std::string& warning : warnings) warning.erase(0, warning.find("): ") + 3);
  return warnings;
}

Warnings OfWindow(double count, int window_ms, int threshold_type = 1) {
  json rule = FlowRule();
  rule["count"] = count;
  rule["clusterConfig"]["windowIntervalMs"] = window_ms;
  rule["clusterConfig"]["thresholdType"] = threshold_type;
  return WarningsOf(rule);
}

TEST_CASE("a rate of which a window may have none is warned of") {
  CHECK(OfWindow(5, 100) == Warnings{"count 5 is 0.5 in 100ms, rounded down: 0 pass, and every "
                                     "request is refused"});
  CHECK(OfWindow(0.5, 1000) == Warnings{"count 0.5 is 0.5 in 1s, rounded down: 0 pass, and every "
                                        "request is refused"});
  CHECK(OfWindow(5, 100, 0) ==
        Warnings{"count 5 for each client is 0.5 in 100ms, rounded down: every request is refused "
                 "while fewer than 2 clients are online"});
}

TEST_CASE("a rate below one a second of which a longer window has calls is not warned of") {
  CHECK(OfWindow(0.5, 10'000).empty());
  CHECK(OfWindow(0.5, 10'000, 0).empty());
  CHECK(OfWindow(0, 10'000).empty());
}

TEST_CASE(
    "a rate that rounding makes clearly less is warned of, and one that it hardly changes not") {
  CHECK(OfWindow(1.6666, 60'000) == Warnings{"count 1.6666 is 99.996 in 60s, rounded down to 99"});
  CHECK(OfWindow(15, 100) == Warnings{"count 15 is 1.5 in 100ms, rounded down to 1"});
  CHECK(OfWindow(2.3, 1000) == Warnings{"count 2.3 is 2.3 in 1s, rounded down to 2"});
  CHECK(OfWindow(1.66667, 60'000).empty());
  CHECK(OfWindow(1.67, 60'000).empty());
  CHECK(OfWindow(8.2, 15'000).empty());  // 123, but for the error of binary fractions.
  CHECK(OfWindow(15, 100, 0).empty());   // Sessions multiply it.
}

TEST_CASE("the count of a value is warned of like that of its rule") {
  json rule = ParamFlowRule();
  rule["paramFlowItemList"] = {{{"object", "vip"}, {"count", 0.5}},
                               {{"object", "5"}, {"classType", "int"}, {"count", 0.25}},
                               {{"object", "good"}, {"count", 2}}};
  CHECK(WarningsOf(rule) ==
        Warnings{"count 0.25 of int '5' is 0.25 in 1s, rounded down: 0 pass, and every request is "
                 "refused; so it is with 1 more value"});
  rule["grade"] = 0;
  CHECK(WarningsOf(rule)[0].starts_with(
      "count 0.25 of int '5' is rounded down: the level is 0, and every acquire is refused"));
  rule["paramFlowItemList"] = {{{"object", "off"}, {"count", 0}}};
  CHECK(WarningsOf(rule).empty());
}

TEST_CASE("each field of Sentinel's kinds that is without effect is told, alone") {
  const struct {
    json rule;
    const char* key;
    json value;
    const char* told;
  } cases[] = {
      {FlowRule(), "limitApp", "appA",
       "limitApp \"appA\" has no effect here: the rule limits all applications together"},
      {FlowRule(), "limitApp", "other",
       "limitApp \"other\" has no effect here: the rule limits all applications together"},
      {FlowRule(), "strategy", 1,
       "strategy 1 has no effect here: only calls with the rule's flowId count"},
      {FlowRule(), "refResource", "stock",
       "refResource \"stock\" has no effect here: only calls with the rule's flowId count"},
      {FlowRule(), "controlBehavior", 1,
       "controlBehavior 1 has no effect here: calls beyond the count are refused at once"},
      {FlowRule(), "controlBehavior", "2",
       "controlBehavior \"2\" has no effect here: calls beyond the count are refused at once"},
      {FlowRule(), "warmUpPeriodSec", 30,
       "warmUpPeriodSec 30 has no effect here: calls beyond the count are refused at once"},
      {FlowRule(), "maxQueueingTimeMs", 2000,
       "maxQueueingTimeMs 2000 has no effect here: only where acquireRefuseStrategy is 3 the "
       "server queues"},
      {ParamFlowRule(), "limitApp", "appA",
       "limitApp \"appA\" has no effect here: the rule limits all applications together"},
      {ParamFlowRule(), "burstCount", 5,
       "burstCount 5 has no effect here: as in Sentinel's token server, which looks at the count "
       "alone"},
      {ParamFlowRule(), "maxQueueingTimeMs", 20,
       "maxQueueingTimeMs 20 has no effect here: only where acquireRefuseStrategy is 3 the server "
       "queues"},
      {HotspotRule(), "maxQueueingTimeMs", 20,
       "maxQueueingTimeMs 20 has no effect here: only where acquireRefuseStrategy is 3 the server "
       "queues"},
      {GoFlowRule(), "refResource", "stock",
       "refResource \"stock\" has no effect here: only calls with the rule's flowId count"},
      {GoFlowRule(), "adaptiveConfigName", "a",
       "adaptiveConfigName \"a\" has no effect here: calls beyond the count are refused at once"},
      {GoFlowRule(), "lowMemUsageThreshold", 100,
       "lowMemUsageThreshold 100 has no effect here: calls beyond the count are refused at once"},
  };
  for (const auto& field : cases) {
    json rule = field.rule;
    rule[field.key] = field.value;
    CAPTURE(rule.dump());
    CHECK(WarningsOf(rule) == Warnings{field.told});
  }
  json cluster = FlowRule();
  cluster["clusterConfig"]["strategy"] = 1;
  CHECK(WarningsOf(cluster) ==
        Warnings{"clusterConfig.strategy 1 has no effect here: a flow borrows from itself only"});
}

TEST_CASE("fields without effect are told together where they share a reason") {
  json rule = FlowRule();
  rule["limitApp"] = "appA";
  rule["strategy"] = 1;
  rule["refResource"] = "stock";
  rule["controlBehavior"] = 2;
  rule["maxQueueingTimeMs"] = 100;
  CHECK(WarningsOf(rule) ==
        Warnings{
            "limitApp \"appA\" has no effect here: the rule limits all applications together",
            "strategy 1, refResource \"stock\" have no effect here: only calls with the rule's "
            "flowId count",
            "controlBehavior 2 has no effect here: calls beyond the count are refused at once",
            "maxQueueingTimeMs 100 has no effect here: only where acquireRefuseStrategy is 3 the "
            "server queues"});
}

TEST_CASE("fields that say no more than their default are not told") {
  json rule = FlowRule();
  rule.update(json::parse(R"({"limitApp":"default","strategy":0,"refResource":null,
    "controlBehavior":"0","warmUpPeriodSec":10,"maxQueueingTimeMs":500})"));
  CHECK(WarningsOf(rule).empty());
  rule.update(json::parse(R"({"limitApp":"","refResource":"","controlBehavior":null})"));
  CHECK(WarningsOf(rule).empty());
  for (const json& written : {FlowRule(), ParamFlowRule(), HotspotRule(), GoFlowRule()}) {
    CHECK(WarningsOf(json::parse(RuleToJson(RuleOf(written.dump())))).empty());
  }
  json level = HotspotRule();
  level["metricType"] = 0;
  CHECK(WarningsOf(json::parse(RuleToJson(RuleOf(level.dump())))).empty());
}

TEST_CASE("maxQueueingTimeMs is for the server's queue and for a leaky bucket") {
  for (json rule : {FlowRule(), ParamFlowRule(), HotspotRule(), GoFlowRule()}) {
    rule["maxQueueingTimeMs"] = 100;
    CHECK(WarningsOf(rule).size() == 1);
    rule["clusterConfig"]["acquireRefuseStrategy"] = 3;
    CHECK(WarningsOf(rule).empty());
  }
  json leaky = HotspotRule();
  leaky["controlBehavior"] = 1;
  leaky["maxQueueingTimeMs"] = 100;
  CHECK(WarningsOf(leaky).empty());
}

TEST_CASE("a hotspot.Rule of calls in progress is told what only a bucket has") {
  json rule = HotspotRule();
  rule.update(json::parse(R"({"metricType":0,"controlBehavior":1,"burstCount":5,
                              "durationInSec":60})"));
  CHECK(WarningsOf(rule) ==
        Warnings{"burstCount 5 has no effect here: only a token bucket has a burst (metricType 1, "
                 "controlBehavior 0)",
                 "controlBehavior 1, durationInSec 60 have no effect here: metricType 0 limits "
                 "calls in progress"});
}

TEST_CASE("what sentinel-golang takes for no hotspot.Rule is told") {
  json rule = HotspotRule();
  rule["paramIndex"] = 1;
  rule["paramKey"] = "tenant";
  CHECK(WarningsOf(rule) == Warnings{"paramIndex 1 and paramKey 'tenant' exclude each other: "
                                     "sentinel-golang ignores a rule with both"});
  rule["paramIndex"] = 0;
  CHECK(WarningsOf(rule).empty());
  json fraction = HotspotRule();
  fraction["threshold"] = 20.05;
  CHECK(WarningsOf(fraction) == Warnings{"threshold 20.05 is no whole number, and "
                                         "sentinel-golang refuses a hotspot.Rule with one"});
  json item = HotspotRule();
  item["specificItems"] = {{"vip", 20.05}};
  CHECK(WarningsOf(item) == Warnings{"threshold 20.05 is no whole number, and "
                                     "sentinel-golang refuses a hotspot.Rule with one"});
  json flow = GoFlowRule();
  flow["threshold"] = 20.05;
  CHECK(WarningsOf(flow).empty());  // A float64 there.
}

TEST_CASE("paramIdx null, as Sentinel writes it where nobody set it, is the first argument") {
  json rule = ParamFlowRule();
  rule["burstCount"] = 0;
  for (const json& unset : {json(), json(""), json("null")}) {
    rule["paramIdx"] = unset;
    CHECK(RuleOf(rule.dump()).param->index == 0);
    CHECK(WarningsOf(rule) == Warnings{"paramIdx is not set: 0 is taken, the first argument; "
                                       "Sentinel ignores such a rule"});
  }
  rule.erase("paramIdx");
  CHECK(Outcome("[" + rule.dump() + "]").find("paramIdx is missing") != std::string::npos);
}

TEST_CASE("a rate beyond the guard of its namespace is warned of") {
  json rule = FlowRule();
  rule["count"] = 1'000'000;
  const auto warned = [&](uint32_t guard) {
    return GuardWarnings({RuleOf(rule.dump())}, guard).Lines();
  };
  CHECK(warned(30'000) ==
        Warnings{"rule of resource 'r', flowId 1: 1000000 in 1s is more than the 30000 requests a "
                 "second that the namespace may send (namespace-qps-max); beyond them the answer "
                 "is TOO_MANY_REQUEST, for which Sentinel's clients let calls pass"});
  CHECK(warned(0).empty());
  CHECK(warned(1'000'000).empty());
  rule["clusterConfig"]["windowIntervalMs"] = 100'000;
  rule["clusterConfig"]["countPerWindow"] = true;
  CHECK(warned(30'000).empty());  // 10,000 a second.
  rule["clusterConfig"].erase("countPerWindow");
  rule["grade"] = 0;
  CHECK(warned(30'000).empty());  // Acquires have no guard.
}

TEST_CASE("an amount is a number of calls at once, or a number in a time") {
  const auto amount = [](const json& rule) {
    const Rule read = RuleOf(rule.dump());
    return AmountText(read, read.count);
  };
  json rule = FlowRule();
  CHECK(amount(rule) == "5 in 1s");
  rule["clusterConfig"]["windowIntervalMs"] = 60'000;
  CHECK(amount(rule) == "300 in 60s");
  rule["count"] = 1.66667;
  CHECK(amount(rule) == "100 in 60s");
  rule["clusterConfig"]["thresholdType"] = 0;
  CHECK(amount(rule) == "100.0002 in 60s");
  rule["count"] = 20;
  rule["grade"] = 0;
  CHECK(amount(rule) == "20");
  json bucket = HotspotRule();
  bucket["durationInSec"] = 3600;
  CHECK(amount(bucket) == "5 in 1h");
  CHECK(IntervalText(500) == "500ms");
  CHECK(IntervalText(1500) == "1500ms");
  CHECK(IntervalText(90'000) == "90s");
  CHECK(IntervalText(7'200'000) == "2h");
  CHECK(IntervalText(172'800'000) == "2d");
}

TEST_CASE("countPerWindow makes the count that of a whole window, and is written as it is") {
  for (json rule : {FlowRule(), ParamFlowRule()}) {
    rule["count"] = 10;
    rule["clusterConfig"]["windowIntervalMs"] = 86'400'000;
    const std::string plain = RuleToJson(RuleOf(rule.dump()));
    CHECK(plain.find("countPerWindow") == std::string::npos);
    rule["clusterConfig"]["countPerWindow"] = true;
    const Rule a_day = RuleOf(rule.dump());
    CHECK(AmountText(a_day, a_day.count) == "10 in 1d");
    CHECK(a_day.CallsInInterval(a_day.count) == 10);
    CHECK(WarningsOf(rule).empty());
    const std::string written = RuleToJson(a_day);
    CHECK(written.find("\"windowIntervalMs\":86400000,\"countPerWindow\":true") !=
          std::string::npos);
    CHECK(ParseRule(written).value() == a_day);
    CHECK(RuleOf(written) == a_day);
    rule["clusterConfig"]["countPerWindow"] = false;
    CHECK(RuleToJson(RuleOf(rule.dump())) == plain);
  }
}

}  // namespace
}  // namespace nowcalls::core
