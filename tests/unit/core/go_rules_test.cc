// Rules of sentinel-golang: hotspot.Rule and flow.Rule.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/param_text.h"
#include "unit/core/rule_parsing.h"

namespace nowcalls::core {
namespace {

using nlohmann::json;
using Remarks = std::vector<std::string>;
using Items = std::vector<ParamRule::Item>;

// As encoding/json writes the rules of its data sources, with our clusterConfig.
constexpr char kDataSourceRule[] = R"({
  "id": "h1", "resource": "chat", "metricType": 1, "controlBehavior": 1, "paramIndex": -2,
  "paramKey": "tenant", "threshold": 100, "maxQueueingTimeMs": 5, "burstCount": 10,
  "durationInSec": 3, "paramsMaxCapacity": 500,
  "specificItems": [{"valKind": 0, "valStr": "7", "threshold": 1},
                    {"valKind": 0, "valStr": "5000000000", "threshold": 2},
                    {"valKind": 1, "valStr": "7", "threshold": 3},
                    {"valKind": 2, "valStr": "true", "threshold": 4},
                    {"valKind": 3, "valStr": "0.5", "threshold": 5}],
  "clusterConfig": {"flowId": 4001, "thresholdType": 1}})";

constexpr char kGoFlowRule[] = R"({
  "id": "f1", "resource": "upload", "tokenCalculateStrategy": 0, "controlBehavior": 0,
  "threshold": 300, "relationStrategy": 0, "refResource": "", "maxQueueingTimeMs": 7,
  "warmUpPeriodSec": 8, "warmUpColdFactor": 3, "statIntervalInMs": 10000,
  "lowMemUsageThreshold": 0, "clusterConfig": {"flowId": 5001, "thresholdType": 1}})";

json Hotspot() {
  return json::parse(R"({"resource":"chat","metricType":0,"paramIndex":0,"threshold":5,
                         "clusterConfig":{"flowId":7}})");
}

json GoFlow() {
  return json::parse(R"({"resource":"upload","statIntervalInMs":0,"threshold":5,
                         "clusterConfig":{"flowId":7}})");
}

ParamRule::Item GoItem(ParamType type, const std::string& text, double count) {
  return {ParamFromText(type, text).value(), count};
}

TEST_CASE("every field of a hotspot.Rule is read") {
  const Rule rule = RuleOf(kDataSourceRule);
  CHECK(rule.resource == "chat");
  CHECK(rule.limit_app == "default");
  CHECK(rule.grade == 1);
  CHECK(rule.count == 100);
  CHECK(rule.max_queueing_time_ms == 5);
  CHECK(rule.flow_id == FlowId{4001});
  CHECK(rule.threshold_type == ThresholdType::kGlobal);
  REQUIRE(rule.param.has_value());
  CHECK(rule.says_rate());
  CHECK(rule.param->algorithm == ParamRule::Algorithm::kLeakyBucket);
  CHECK(rule.param->index == -2);
  CHECK(rule.param->key == "tenant");
  CHECK(rule.param->burst_count == 10);
  CHECK(rule.param->duration_ms == 3000);
  CHECK(rule.param->values_max == 500);
}

TEST_CASE("an int of Go is the int or the long that clients send for it") {
  CHECK(RuleOf(kDataSourceRule).param->items ==
        Items{GoItem(ParamType::kInt, "7", 1), GoItem(ParamType::kLong, "5000000000", 2),
              GoItem(ParamType::kDouble, "0.5", 5), GoItem(ParamType::kBoolean, "true", 4),
              GoItem(ParamType::kString, "7", 3)});
}

TEST_CASE("a hotspot.Rule with the least that is needed gets Go's defaults") {
  Rule expected;
  expected.resource = "chat";
  expected.grade = 0;
  expected.count = 5;
  expected.flow_id = FlowId{7};
  expected.max_queueing_time_ms = 0;
  expected.param.emplace();
  expected.param->algorithm = ParamRule::Algorithm::kTokenBucket;
  CHECK(RuleOf(Hotspot().dump()) == expected);
  // sentinel-golang does not look at the duration of calls in progress.
  json zero = Hotspot();
  zero["durationInSec"] = 0;
  CHECK(RuleOf(zero.dump()) == expected);
}

TEST_CASE("specificItems may be a map, whose keys are strings") {
  json rule = Hotspot();
  rule["specificItems"] = {{"vip", 100}, {"free", 0}, {"some", 5}};
  CHECK(RuleOf(rule.dump()).param->items == Items{GoItem(ParamType::kString, "free", 0),
                                                  GoItem(ParamType::kString, "some", 5),
                                                  GoItem(ParamType::kString, "vip", 100)});
  CHECK(RemarksOn(rule.dump()).empty());
  rule["specificItems"] = {{"vip", 100}, {"9001", 1}, {"true", 1}};
  CHECK(RuleOf(rule.dump()).param->items.size() == 3);
  CHECK(RemarksOn(rule.dump()) ==
        Remarks{"rule 1 (resource \"chat\", flowId 7): specificItems as a map holds strings, and "
                "'9001' is one; for a number or a boolean write [{\"valKind\": 0, \"valStr\": "
                "\"5\", \"threshold\": 10}]"});
  for (const char* none : {"null", "[]", "{}"}) {
    rule["specificItems"] = json::parse(none);
    CHECK(RuleOf(rule.dump()).param->items.empty());
  }
}

TEST_CASE("what is wrong with a hotspot.Rule is said with the field and the reason") {
  const std::string where = R"(rule 1 (resource "chat", flowId 7): )";
  const auto error = [&](const char* key, const char* value) {
    json rule = Hotspot();
    rule[key] = json::parse(value);
    const std::string text = Outcome("[" + rule.dump() + "]");
    REQUIRE_MESSAGE(text.starts_with(where), text);
    return text.substr(where.size());
  };
  CHECK(error("threshold", "null").starts_with("threshold is missing; it must be >= 0; "));
  CHECK(error("threshold", "-1") == "threshold must be >= 0");
  CHECK(error("metricType", "2").starts_with("metricType must be an integer from 0 to 1"));
  CHECK(
      error("controlBehavior", "2").starts_with("controlBehavior must be an integer from 0 to 1"));
  CHECK(error("paramKey", "5") == "paramKey must be a string, got 5");
  CHECK(
      error("paramsMaxCapacity", "-1").starts_with("paramsMaxCapacity must be an integer from 0"));
  CHECK(error("durationInSec", "-1").starts_with("durationInSec must be an integer from 1"));
  CHECK(error("metricType", "1")
            .starts_with("durationInSec is missing; it must be > 0 where metricType is 1 (QPS)"));
  CHECK(error("specificItems", "5") ==
        "specificItems must be a list of {valKind, valStr, threshold} or a map, got 5");
  CHECK(error("specificItems", R"({"a":"x"})") ==
        "specificItems must hold a number >= 0 for each value, got \"x\" for \"a\"");
  CHECK(error("specificItems", R"({"a":-1})") ==
        "specificItems must hold a number >= 0 for each value, got -1 for \"a\"");
  CHECK(error("specificItems", R"([{"valKind":4,"valStr":"x","threshold":1}])") ==
        "specificItems.valKind of item 1 must be an integer from 0 to 3, got 4");
  CHECK(error("specificItems", R"([{"valKind":0,"valStr":"x","threshold":1}])") ==
        "specificItems.valStr of item 1 must be a value of type int, got \"x\"");
  CHECK(error("specificItems", R"([{"valKind":2,"valStr":"x","threshold":1}])") ==
        "specificItems.valStr of item 1 must be a value of type bool, got \"x\"");
  CHECK(error("specificItems", R"([{"valKind":3,"valStr":"NaN","threshold":1}])") ==
        "specificItems.valStr of item 1 must be a value of type float64, got \"NaN\"");
  CHECK(error("specificItems", R"([{"valKind":1,"threshold":1}])")
            .starts_with("specificItems.valStr of item 1 is missing"));
  CHECK(error("specificItems", R"([{"valKind":1,"valStr":"x"}])")
            .starts_with("specificItems.threshold of item 1 is missing"));
  CHECK(error("specificItems", R"([{"valStr":"5","threshold":1},{"valStr":"05","threshold":2}])") ==
        "specificItems holds the int '5' twice");
  json capped = Hotspot();
  capped["clusterConfig"]["maxPerClient"] = 1;
  CHECK(Outcome("[" + capped.dump() + "]").ends_with("it limits each value alone"));
}

TEST_CASE("every field of a flow.Rule is read, and its threshold is for its interval") {
  const Rule rule = RuleOf(kGoFlowRule);
  CHECK(rule.resource == "upload");
  CHECK(rule.grade == 1);
  CHECK(rule.count == 300);
  CHECK(rule.count_per_interval);
  CHECK(rule.window_interval_ms == 10000);
  CHECK(rule.sample_count == 10);
  CHECK(rule.max_queueing_time_ms == 7);
  CHECK(rule.warm_up_period_sec == 8);
  CHECK(rule.warm_up_cold_factor == 3);
  CHECK(rule.flow_id == FlowId{5001});
  CHECK_FALSE(rule.param.has_value());
  CHECK(RuleOf(GoFlow().dump()).window_interval_ms == 1000);
}

TEST_CASE("a flow.Rule has ten buckets, or as many as divide its interval") {
  const auto buckets = [](int interval_ms) {
    json rule = GoFlow();
    rule["statIntervalInMs"] = interval_ms;
    return RuleOf(rule.dump()).sample_count;
  };
  CHECK(buckets(500) == 10);
  CHECK(buckets(1500) == 10);
  CHECK(buckets(1001) == 7);
  CHECK(buckets(997) == 1);
  CHECK(buckets(4) == 4);
  json rule = GoFlow();
  rule["clusterConfig"]["sampleCount"] = 20;
  CHECK(RuleOf(rule.dump()).sample_count == 20);
  rule["clusterConfig"]["sampleCount"] = 3;
  CHECK(Outcome("[" + rule.dump() + "]")
            .ends_with("clusterConfig.sampleCount must divide statIntervalInMs"));
  rule["clusterConfig"] = {{"flowId", 7}, {"windowIntervalMs", 2000}};
  CHECK(Outcome("[" + rule.dump() + "]")
            .ends_with("clusterConfig.windowIntervalMs is not for a flow.Rule: statIntervalInMs is "
                       "its interval"));
}

TEST_CASE("each field of a flow.Rule has its range, and what has no effect is told") {
  const auto with = [](const char* key, int value) {
    json rule = GoFlow();
    rule[key] = value;
    return rule.dump();
  };
  const auto error = [&](const char* key, int value) {
    return Outcome("[" + with(key, value) + "]");
  };
  CHECK(error("threshold", -1).ends_with("threshold must be >= 0"));
  CHECK(error("tokenCalculateStrategy", 3).ends_with("must be an integer from 0 to 2, got 3"));
  CHECK(error("controlBehavior", 2).ends_with("must be an integer from 0 to 1, got 2"));
  CHECK(error("relationStrategy", 2).ends_with("must be an integer from 0 to 1, got 2"));
  CHECK(error("statIntervalInMs", -1).ends_with("must be an integer from 0 to 2147483647, got -1"));
  const std::string where = R"(rule 1 (resource "upload", flowId 7): )";
  for (const char* key :
       {"tokenCalculateStrategy", "controlBehavior", "warmUpPeriodSec", "warmUpColdFactor"}) {
    CHECK(
        RemarksOn(with(key, 1)) ==
        Remarks{where + key + " 1 has no effect here: calls beyond the count are refused at once"});
  }
  CHECK(RemarksOn(with("relationStrategy", 1)) ==
        Remarks{where +
                "relationStrategy 1 has no effect here: only calls with the rule's flowId count"});
  CHECK(RemarksOn(GoFlow().dump()).empty());
}

TEST_CASE("a rule of sentinel-golang applies by its clusterConfig, without clusterMode") {
  for (const json& rule : {Hotspot(), GoFlow()}) {
    json local = rule;
    local["clusterMode"] = false;
    CHECK(Outcome("[" + rule.dump() + "]") == "loaded 1");
    json other = rule;
    other["clusterMode"] = "true";
    other["clusterConfig"]["flowId"] = 8;
    CHECK(Outcome("[" + rule.dump() + "," + local.dump() + "," + other.dump() + "]") == "loaded 2");
    json without = rule;
    without.erase("clusterConfig");
    CHECK(Outcome("[" + without.dump() + "]")
              .starts_with("rule 1 (resource " + rule["resource"].dump() +
                           "): clusterConfig is missing; write \"clusterMode\": true to limit "
                           "calls here, or false to leave the rule to clients; '"));
    without["clusterMode"] = true;
    CHECK(Outcome("[" + without.dump() + "]") == "loaded 1");
    // A slip in the key never decides.
    for (const char* key : {"ClusterMode", "cluster_mode", "clusterMod"}) {
      json misspelt = rule;
      misspelt[key] = false;
      CHECK(Outcome("[" + misspelt.dump() + "]").find("clusterMode is missing; ") !=
            std::string::npos);
    }
  }
}

TEST_CASE(
    "rules of all forms stand in one set, and a flowId has one of the flow and one by value") {
  const std::string flow =
      R"({"resource":"r","count":1,"clusterMode":true,"clusterConfig":{"flowId":8}})";
  const std::string set = std::string(kDataSourceRule) + "," + kGoFlowRule + "," + flow;
  CHECK(Outcome("[" + set + "," + Hotspot().dump() + "]") == "loaded 4");
  const std::string more = set + "," + Hotspot().dump() + "," + GoFlow().dump();
  CHECK(Outcome("[" + more + "]") == "loaded 5");
  CHECK(Outcome("[" + more + "," + GoFlow().dump() + "]") ==
        "rule 6 (resource \"upload\", flowId 7): clusterConfig.flowId appears twice in this set");
  CHECK(Outcome("[" + more + "," + Hotspot().dump() + "]")
            .ends_with("clusterConfig.flowId appears twice in this set, in two rules by value"));
}

TEST_CASE("a rule of sentinel-golang is written with every field, and read back the same") {
  CHECK(RuleToJson(RuleOf(kDataSourceRule)) ==
        R"({"resource":"chat","metricType":1,"controlBehavior":1,"paramIndex":-2,)"
        R"("paramKey":"tenant","threshold":100,"maxQueueingTimeMs":5,"burstCount":10,)"
        R"("durationInSec":3,"paramsMaxCapacity":500,"specificItems":[)"
        R"({"valKind":0,"valStr":"7","threshold":1},)"
        R"({"valKind":0,"valStr":"5000000000","threshold":2},)"
        R"({"valKind":3,"valStr":"0.5","threshold":5},)"
        R"({"valKind":2,"valStr":"true","threshold":4},)"
        R"({"valKind":1,"valStr":"7","threshold":3}],"clusterMode":true,)"
        R"("clusterConfig":{"flowId":4001,"thresholdType":1,"fallbackToLocalWhenFail":true,)"
        R"("resourceTimeout":2000,"resourceTimeoutStrategy":0,"acquireRefuseStrategy":0,)"
        R"("clientOfflineTime":2000,"maxHoldMs":0,"maxPerClient":0,"shadow":false}})");
  CHECK(RuleToJson(RuleOf(kGoFlowRule)) ==
        R"({"resource":"upload","tokenCalculateStrategy":0,"controlBehavior":0,"threshold":300,)"
        R"("relationStrategy":0,"maxQueueingTimeMs":7,"warmUpPeriodSec":8,"warmUpColdFactor":3,)"
        R"("statIntervalInMs":10000,"clusterMode":true,"clusterConfig":{"flowId":5001,)"
        R"("thresholdType":1,"fallbackToLocalWhenFail":true,"sampleCount":10,)"
        R"("resourceTimeout":2000,"resourceTimeoutStrategy":0,"acquireRefuseStrategy":0,)"
        R"("clientOfflineTime":2000,"maxHoldMs":0,"maxPerClient":0,"shadow":false}})");
  json flow = GoFlow();
  flow["tokenCalculateStrategy"] = flow["controlBehavior"] = flow["relationStrategy"] = 1;
  flow["clusterConfig"]["maxPerClient"] = "25%";
  for (const std::string& text : {std::string(kDataSourceRule), std::string(kGoFlowRule),
                                  Hotspot().dump(), GoFlow().dump(), flow.dump()}) {
    const Rule rule = RuleOf(text);
    CHECK(RuleOf(RuleToJson(rule)) == rule);
    CHECK(ParseRule(RuleToJson(rule)).value() == rule);
  }
}

}  // namespace
}  // namespace nowcalls::core
