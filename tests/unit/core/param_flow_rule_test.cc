// Sentinel's ParamFlowRule, as its dashboard writes it.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/param_text.h"
#include "unit/core/rule_parsing.h"

namespace nowcalls::core {
namespace {

using nlohmann::json;
using Lines = std::vector<std::string>;

// As fastjson writes a ParamFlowRule: every field, in the order of the alphabet.
constexpr char kDashboardRule[] = R"({
  "burstCount": 3,
  "clusterConfig": {"fallbackToLocalWhenFail": true, "flowId": 3001, "sampleCount": 5,
                    "thresholdType": 1, "windowIntervalMs": 2000},
  "clusterMode": true, "controlBehavior": 2, "count": 5.0, "durationInSec": 4, "grade": 1,
  "limitApp": "app-a", "maxQueueingTimeMs": 20,
  "paramFlowItemList": [{"classType": "int", "count": 10, "object": "100"},
                        {"classType": "java.lang.String", "count": 0, "object": "vip"}],
  "paramIdx": -1, "resource": "chat"})";

json Least() {
  return json::parse(R"({"resource":"chat","paramIdx":0,"count":5,"clusterMode":true,
                         "clusterConfig":{"flowId":7}})");
}

// The least rule with a list of items.
std::string WithItems(const std::string& items) {
  json rule = Least();
  rule["paramFlowItemList"] = json::parse(items);
  return rule.dump();
}

ParamRule::Item ItemOf(ParamType type, const std::string& text, double count) {
  return {ParamFromText(type, text).value(), count};
}

TEST_CASE("every field of a ParamFlowRule is read, in any order") {
  const Rule rule = RuleOf(kDashboardRule);
  CHECK(rule.resource == "chat");
  CHECK(rule.limit_app == "app-a");
  CHECK(rule.grade == 1);
  CHECK(rule.count == 5);
  CHECK(rule.control_behavior == 2);
  CHECK(rule.max_queueing_time_ms == 20);
  CHECK(rule.flow_id == FlowId{3001});
  CHECK(rule.threshold_type == ThresholdType::kGlobal);
  CHECK(rule.fallback_to_local_when_fail);
  CHECK(rule.sample_count == 5);
  CHECK(rule.window_interval_ms == 2000);
  CHECK_FALSE(rule.count_per_interval);
  REQUIRE(rule.param.has_value());
  CHECK(rule.says_rate());
  CHECK(rule.param->algorithm == ParamRule::Algorithm::kWindow);
  CHECK(rule.param->index == -1);
  CHECK(rule.param->burst_count == 3);
  CHECK(rule.param->duration_ms == 4000);
  CHECK(rule.param->items == std::vector<ParamRule::Item>{ItemOf(ParamType::kInt, "100", 10),
                                                          ItemOf(ParamType::kString, "vip", 0)});
}

TEST_CASE("a ParamFlowRule with the least that is needed gets Sentinel's defaults") {
  Rule expected;
  expected.resource = "chat";
  expected.count = 5;
  expected.flow_id = FlowId{7};
  expected.max_queueing_time_ms = 0;
  expected.fallback_to_local_when_fail = false;
  expected.param.emplace();
  CHECK(RuleOf(Least().dump()) == expected);
  // The dashboard writes null for what is unset.
  json nulls = Least();
  for (const char* key : {"limitApp", "grade", "controlBehavior", "maxQueueingTimeMs", "burstCount",
                          "durationInSec", "paramFlowItemList"}) {
    nulls[key] = nullptr;
  }
  CHECK(RuleOf(nulls.dump()) == expected);
  CHECK(RuleOf(WithItems("[]")) == expected);
}

TEST_CASE("a rule of grade 0 limits calls in progress for each value") {
  json rule = Least();
  rule["grade"] = 0;
  rule["clusterConfig"]["resourceTimeout"] = 60000;
  rule["clusterConfig"]["acquireRefuseStrategy"] = 3;
  rule["clusterConfig"]["shadow"] = true;
  rule["clusterConfig"]["paramsMaxCapacity"] = 50;
  const Rule read = RuleOf(rule.dump());
  CHECK(read.grade == 0);
  CHECK_FALSE(read.says_rate());
  CHECK(read.resource_timeout_ms == 60000);
  CHECK(read.acquire_refuse_strategy == 3);
  CHECK(read.shadow);
  CHECK(read.param->values_max == 50);
}

TEST_CASE("an item has the type that its classType names, primitive or boxed") {
  const struct {
    const char* class_type;
    const char* object;
    ParamType type;
  } cases[] = {
      {"int", "5", ParamType::kInt},
      {"java.lang.Integer", "-5", ParamType::kInt},
      {"long", "5", ParamType::kLong},
      {"java.lang.Long", "5000000000", ParamType::kLong},
      {"byte", "5", ParamType::kByte},
      {"java.lang.Byte", "5", ParamType::kByte},
      {"short", "5", ParamType::kShort},
      {"java.lang.Short", "5", ParamType::kShort},
      {"double", "0.5", ParamType::kDouble},
      {"java.lang.Double", "0.5", ParamType::kDouble},
      {"float", "0.5", ParamType::kFloat},
      {"java.lang.Float", "0.5", ParamType::kFloat},
      {"boolean", "true", ParamType::kBoolean},
      {"java.lang.Boolean", "false", ParamType::kBoolean},
      {"char", "\xc3\xa9", ParamType::kString},
      {"java.lang.Character", "x", ParamType::kString},
      {"String", "5", ParamType::kString},
      {"java.lang.String", "a", ParamType::kString},
      {"", "a", ParamType::kString},
  };
  for (const auto& item : cases) {
    CAPTURE(item.class_type);
    const json list = {{{"object", item.object}, {"classType", item.class_type}, {"count", 1}}};
    CHECK(RuleOf(WithItems(list.dump())).param->items ==
          std::vector<ParamRule::Item>{ItemOf(item.type, item.object, 1)});
  }
  CHECK(RuleOf(WithItems(R"([{"object":"a","count":"1,000"}])")).param->items ==
        std::vector<ParamRule::Item>{ItemOf(ParamType::kString, "a", 1000)});
}

TEST_CASE("values of different types are different values, and their order makes no other rule") {
  const Rule rule = RuleOf(WithItems(R"([
      {"object":"5","classType":"int","count":1},{"object":"5","classType":"long","count":2},
      {"object":"5","classType":"String","count":3}])"));
  CHECK(rule.param->items.size() == 3);
  CHECK(rule == RuleOf(WithItems(R"([
      {"object":"5","classType":"String","count":3},{"object":"5","classType":"int","count":1},
      {"object":"5","classType":"long","count":2}])")));
}

TEST_CASE("what is wrong with an item is said with its place, its field and the reason") {
  const auto error = [](const std::string& items) { return Outcome("[" + WithItems(items) + "]"); };
  const std::string where = R"(rule 1 (resource "chat", flowId 7): )";
  CHECK(error(R"([{"object":"1","classType":"int","count":1},{"object":"x","classType":"int",
                   "count":1}])") ==
        where + "paramFlowItemList.object of item 2 must be a value of type int, got \"x\"");
  CHECK(error(R"([{"object":"1","classType":"Integer","count":1}])") ==
        where +
            "paramFlowItemList.classType of item 1 must be int, long, double, float, byte, short, "
            "boolean, char or String, got \"Integer\"");
  CHECK(error(R"([{"object":"xy","classType":"char","count":1}])") ==
        where + "paramFlowItemList.object of item 1 must be a value of type char, got \"xy\"");
  CHECK(error(R"([{"object":5,"classType":"int","count":1}])") ==
        where + "paramFlowItemList.object of item 1 must be a string, got 5");
  CHECK(error(R"([{"object":"5","classType":"int"}])")
            .starts_with(where + "paramFlowItemList.count of item 1 is missing; it must be >= 0"));
  CHECK(error(R"([{"object":"5","classType":"int","count":-1}])") ==
        where + "paramFlowItemList.count of item 1 must be >= 0");
  CHECK(error(R"([{"classType":"int","count":1}])")
            .starts_with(where + "paramFlowItemList.object of item 1 is missing"));
  CHECK(error(R"([{"Object":"5","count":1}])")
            .starts_with(where +
                         "paramFlowItemList.object of item 1 is missing; "
                         "'paramFlowItemList.Object' is not known and is ignored; did you mean "
                         "paramFlowItemList.object?"));
  CHECK(error("[5]") == where + "paramFlowItemList of item 1 must be an object");
  CHECK(error(R"({"a":1})") ==
        where + "paramFlowItemList must be a list of objects, got {\"a\":1}");
  CHECK(error(R"([{"object":"5","classType":"int","count":1},{"object":"6","count":1},
                  {"object":"+5","classType":"java.lang.Integer","count":2}])") ==
        where + "paramFlowItemList holds the int '5' twice");
}

TEST_CASE("items are few enough for every list, and values no longer than a request has them") {
  const auto rule = [](size_t items, size_t bytes) {
    json list = json::array();
    for (size_t i = 0; i < items; ++i) {
      std::string object = std::to_string(i);
      object.resize(bytes, 'x');
      list.push_back({{"object", object}, {"count", 1}});
    }
    return "[" + WithItems(list.dump()) + "]";
  };
  CHECK(Outcome(rule(kParamItemsMax, 8)) == "loaded 1");
  CHECK(Outcome(rule(kParamItemsMax + 1, 8))
            .ends_with("paramFlowItemList holds 1001 values; at most 1000 are allowed"));
  CHECK(Outcome(rule(1, kParamBytesMax)) == "loaded 1");
  CHECK(Outcome(rule(1, kParamBytesMax + 1)).ends_with("must be at most 1024 bytes long"));
}

TEST_CASE("each field of a ParamFlowRule has its range") {
  const auto error = [](const char* key, const json& value) {
    json rule = Least();
    rule[key] = value;
    const std::string text = Outcome("[" + rule.dump() + "]");
    const std::string where = R"(rule 1 (resource "chat", flowId 7): )";
    REQUIRE_MESSAGE(text.starts_with(where), text);
    return text.substr(where.size());
  };
  CHECK(error("paramIdx", 2147483648).starts_with("paramIdx must be an integer from -2147483648"));
  CHECK(error("grade", 2).starts_with("grade must be an integer from 0 to 1"));
  CHECK(error("count", -1) == "count must be >= 0");
  CHECK(error("controlBehavior", 4).starts_with("controlBehavior must be an integer from 0 to 3"));
  CHECK(error("maxQueueingTimeMs", -1).starts_with("maxQueueingTimeMs must be an integer from 0"));
  CHECK(error("burstCount", -1).starts_with("burstCount must be an integer from 0"));
  CHECK(
      error("durationInSec", 0).starts_with("durationInSec must be an integer from 1 to 2592000"));
  const auto cluster_error = [](const char* key, const json& value) {
    json rule = Least();
    rule["clusterConfig"][key] = value;
    return Outcome("[" + rule.dump() + "]");
  };
  CHECK(cluster_error("sampleCount", 3)
            .ends_with("clusterConfig.windowIntervalMs must be divisible by sampleCount"));
  CHECK(cluster_error("flowId", nullptr) == "loaded 1");
  CHECK(cluster_error("maxPerClient", 5)
            .ends_with("clusterConfig.maxPerClient must be 0 for a rule with a parameter: it "
                       "limits each value "
                       "alone"));
  CHECK(cluster_error("maxPerClient", "25%").ends_with("it limits each value alone"));
  CHECK(cluster_error("maxPerClient", 0) == "loaded 1");
}

TEST_CASE("a ParamFlowRule that the dashboard has wrapped is read like one alone") {
  const json wrapped = {{"id", 1},
                        {"app", "a"},
                        {"ip", "10.0.0.1"},
                        {"port", 8719},
                        {"gmtCreate", 1},
                        {"gmtModified", nullptr},
                        {"rule", json::parse(kDashboardRule)}};
  CHECK(RuleOf(wrapped.dump()) == RuleOf(kDashboardRule));
  json wrong = wrapped;
  wrong["rule"]["count"] = -1;
  CHECK(Outcome("[" + wrong.dump() + "]") ==
        "rule 1 (resource \"chat\", flowId 3001): count must be >= 0");
  json local = wrapped;
  local["rule"]["clusterMode"] = false;
  CHECK(Outcome("[" + local.dump() + "," + Least().dump() + "]") == "loaded 1");
  CHECK(Outcome(R"([{"id":1,"rule":{"resource":"r","paramIdx":0,"count":1,"clusterMode":true,
                     "clusterMode":false,"clusterConfig":{"flowId":1}}}])")
            .find("clusterMode appears twice") != std::string::npos);
  const json twice = {{"id", 1}, {"rule", wrapped}};
  CHECK(Outcome("[" + twice.dump() + "]").starts_with("rule 1: is no rule of a known kind"));
}

TEST_CASE("what the dashboard writes beside a wrapped rule does not make it another kind") {
  const json rule = json::parse(kDashboardRule);
  json entity = {{"id", 1}, {"app", "a"}, {"limitApp", "app-a"}, {"resource", "chat"}};
  entity["rule"] = rule;
  entity["rule"]["id"] = 77;
  CHECK(RuleOf(entity.dump()) == RuleOf(kDashboardRule));
  for (const char* key : {"count", "grade", "paramIdx", "burstCount", "clusterMode"}) {
    entity[key] = rule.value(key, json());
    CAPTURE(key);
    CHECK(RuleOf(entity.dump()) == RuleOf(kDashboardRule));
  }
  entity["clusterConfig"] = rule["clusterConfig"];
  CHECK(RuleOf(entity.dump()) == RuleOf(kDashboardRule));
}

TEST_CASE("a key beside a wrapped rule that has another value than the rule refuses the set") {
  json entity = {{"app", "a"}, {"rule", json::parse(kDashboardRule)}};
  for (const auto& [key, value] :
       {std::pair("resource", json("other")), std::pair("count", json(99)),
        std::pair("clusterMode", json(false)), std::pair("paramIdx", json(9))}) {
    json wrong = entity;
    wrong[key] = value;
    const std::string name = key;
    CHECK(Outcome("[" + wrong.dump() + "]") ==
          "rule 1 (resource \"chat\", flowId 3001): '" + name + "' and 'rule." + name +
              "' differ; the rule is the object 'rule', so leave out what is beside it");
  }
}

TEST_CASE("fields that do not count here are told, whatever the rule limits") {
  const std::string where = R"(rule 1 (resource "chat", flowId 3001): )";
  const Lines told = {
      where + "limitApp \"app-a\" has no effect here: the rule limits all applications together",
      where +
          "controlBehavior 2, burstCount 3, durationInSec 4 have no effect here: as in "
          "Sentinel's token server, which looks at the count alone",
      where +
          "maxQueueingTimeMs 20 has no effect here: only where acquireRefuseStrategy is 3 the "
          "server queues"};
  CHECK(RemarksOn(kDashboardRule) == told);
  json rule = json::parse(kDashboardRule);
  rule["grade"] = 0;
  CHECK(RemarksOn(rule.dump()) == told);
  CHECK(RemarksOn(Least().dump()).empty());
}

TEST_CASE("a level or a rate of 0 by rounding is warned of") {
  json rule = Least();
  rule["count"] = 0.5;
  const std::string where = R"(rule 1 (resource "chat", flowId 7): )";
  CHECK(RemarksOn(rule.dump()) ==
        Lines{where + "count 0.5 for each client is 0.5 in 1s, rounded down: every request is "
                      "refused while fewer than 2 clients are online"});
  rule["grade"] = 0;
  CHECK(RemarksOn(rule.dump()) ==
        Lines{where + "count 0.5 for each client is rounded down: the level is 0 while fewer than "
                      "2 clients are online"});
}

TEST_CASE("a ParamFlowRule is written with every field, and read back the same") {
  CHECK(RuleToJson(RuleOf(kDashboardRule)) ==
        R"({"resource":"chat","limitApp":"app-a","grade":1,"paramIdx":-1,"count":5,)"
        R"("controlBehavior":2,"maxQueueingTimeMs":20,"burstCount":3,"durationInSec":4,)"
        R"("paramFlowItemList":[{"object":"100","count":10,"classType":"int"},)"
        R"({"object":"vip","count":0,"classType":"java.lang.String"}],"clusterMode":true,)"
        R"("clusterConfig":{"flowId":3001,"thresholdType":1,"fallbackToLocalWhenFail":true,)"
        R"("sampleCount":5,"windowIntervalMs":2000,"paramsMaxCapacity":0,"resourceTimeout":2000,)"
        R"("resourceTimeoutStrategy":0,"acquireRefuseStrategy":0,"clientOfflineTime":2000,)"
        R"("maxHoldMs":0,"maxPerClient":0,"shadow":false}})");
  const std::string every_type = WithItems(R"([
      {"object":"1","classType":"int","count":0.5},{"object":"2","classType":"long","count":1},
      {"object":"3","classType":"byte","count":1},{"object":"0.1","classType":"double","count":1},
      {"object":"0.1","classType":"float","count":1},{"object":"4","classType":"short","count":1},
      {"object":"TRUE","classType":"boolean","count":1},{"object":"","count":1},
      {"object":"quote \" \\ \u0001 caf\u00e9","count":1},
      {"object":"c","classType":"char","count":1}
      ])");
  for (const std::string& text : {std::string(kDashboardRule), Least().dump(), every_type}) {
    const Rule rule = RuleOf(text);
    CHECK(RuleOf(RuleToJson(rule)) == rule);
    CHECK(ParseRule(RuleToJson(rule)).value() == rule);
  }
}

}  // namespace
}  // namespace nowcalls::core
