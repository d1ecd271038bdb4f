#include "core/rules/rule_json.h"

#include <doctest/doctest.h>

#include <string>

#include "base/limits.h"

namespace nowcalls::core {
namespace {

Rule ParseOne(const std::string& json) {
  const auto parsed = ParseRules(json);
  REQUIRE(parsed.status().ToString() == "ok");
  REQUIRE(parsed->rules.size() == 1);
  return parsed->rules[0];
}

TEST_CASE("a rule with the least that is needed gets Sentinel's defaults") {
  const Rule rule = ParseOne(
      R"([{"resource":"orders","count":10,"clusterMode":true,"clusterConfig":{"flowId":111}}])");
  CHECK(rule.resource == "orders");
  CHECK(rule.limit_app == "default");
  CHECK(rule.grade == 1);
  CHECK(rule.count == 10);
  CHECK(rule.strategy == 0);
  CHECK(rule.control_behavior == 0);
  CHECK(rule.warm_up_period_sec == 10);
  CHECK(rule.max_queueing_time_ms == 500);
  CHECK(rule.flow_id == FlowId{111});
  CHECK(rule.threshold_type == ThresholdType::kAvgLocal);
  CHECK(rule.fallback_to_local_when_fail);
  CHECK(rule.cluster_strategy == 0);
  CHECK(rule.sample_count == 10);
  CHECK(rule.window_interval_ms == 1000);
  CHECK(rule.resource_timeout_ms == 2000);
  CHECK(rule.resource_timeout_strategy == 0);
  CHECK(rule.acquire_refuse_strategy == 0);
  CHECK(rule.client_offline_time_ms == 2000);
}

constexpr char kFullRule[] = R"({
  "clusterConfig": {
    "clientOfflineTime": 7001, "acquireRefuseStrategy": 3, "resourceTimeoutStrategy": 2,
    "resourceTimeout": 60000, "windowIntervalMs": 2000, "sampleCount": 20, "strategy": 4,
    "fallbackToLocalWhenFail": false, "thresholdType": 1, "flowId": 9223372036854775807
  },
  "clusterMode": true, "maxQueueingTimeMs": 600, "warmUpPeriodSec": 11, "controlBehavior": 2,
  "strategy": 1, "count": 2.5, "grade": 0, "limitApp": "app-a", "resource": "caf\u00e9"
})";

TEST_CASE("every field is read, in any order") {
  const Rule rule = ParseOne("[" + std::string(kFullRule) + "]");
  CHECK(rule.resource == "caf\xc3\xa9");
  CHECK(rule.limit_app == "app-a");
  CHECK(rule.grade == 0);
  CHECK(rule.count == 2.5);
  CHECK(rule.strategy == 1);
  CHECK(rule.control_behavior == 2);
  CHECK(rule.warm_up_period_sec == 11);
  CHECK(rule.max_queueing_time_ms == 600);
  CHECK(rule.flow_id == FlowId{INT64_MAX});
  CHECK(rule.threshold_type == ThresholdType::kGlobal);
  CHECK_FALSE(rule.fallback_to_local_when_fail);
  CHECK(rule.cluster_strategy == 4);
  CHECK(rule.sample_count == 20);
  CHECK(rule.window_interval_ms == 2000);
  CHECK(rule.resource_timeout_ms == 60000);
  CHECK(rule.resource_timeout_strategy == 2);
  CHECK(rule.acquire_refuse_strategy == 3);
  CHECK(rule.client_offline_time_ms == 7001);
}

TEST_CASE("a rule that was written is read back the same") {
  const Rule full = ParseOne("[" + std::string(kFullRule) + "]");
  const auto again = ParseRule(RuleToJson(full));
  REQUIRE(again.status().ToString() == "ok");
  CHECK(*again == full);
  CHECK(RuleToJson(*again) == RuleToJson(full));

  Rule odd;
  odd.resource = "quote \" backslash \\ euro \xe2\x82\xac";
  odd.flow_id = FlowId{1};
  odd.resource_timeout_ms = kRuleTimeMsMax;
  odd.client_offline_time_ms = kRuleTimeMsMax;
  for (const double count : {0.0, 0.1, 1.0 / 3, 1e15, 9007199254740992.0, 1e300, 2147483647.5}) {
    odd.count = count;
    const auto parsed = ParseRule(RuleToJson(odd));
    REQUIRE(parsed.status().ToString() == "ok");
    CHECK(*parsed == odd);
  }
}

TEST_CASE("a whole count is written as an integer as far as every reader keeps its digits") {
  const auto written = [](double count) {
    Rule rule;
    rule.resource = "r";
    rule.flow_id = FlowId{1};
    rule.count = count;
    const std::string json = RuleToJson(rule);
    const size_t begin = json.find("\"count\":") + 8;
    return json.substr(begin, json.find(',', begin) - begin);
  };
  CHECK(written(0) == "0");
  CHECK(written(-0.0) == "0");
  CHECK(written(10'000) == "10000");
  CHECK(written(2.5) == "2.5");
  CHECK(written(9007199254740991.0) == "9007199254740991");
  CHECK(written(9007199254740992.0) == "9.007199254740992e+15");
  CHECK(written(1e300) == "1e+300");
}

TEST_CASE("a cap is read as a count or as a share, and written as it was") {
  const auto rule = [](const std::string& cap) {
    return ParseOne(R"([{"resource":"r","count":1,"clusterMode":true,"clusterConfig":{"flowId":7,
                        "shadow":true,"maxPerClient":)" +
                    cap + "}}]");
  };
  CHECK(rule("5").max_per_client == 5);
  CHECK(rule("5").max_per_client_percent == 0);
  CHECK(rule("5").shadow);
  CHECK(rule(R"("12.5%")").max_per_client_percent == 12.5);
  CHECK(rule(R"("12.5%")").max_per_client == 0);
  CHECK(rule(R"("100%")").capped());
  CHECK_FALSE(rule("0").capped());
  CHECK_FALSE(rule("null").capped());
  for (const std::string cap : {"5", "0", R"("25%")", R"("12.5%")", R"("0.001%")", R"("1e-07%")"}) {
    CHECK(ParseRule(RuleToJson(rule(cap))).value() == rule(cap));
    CHECK(RuleToJson(rule(cap)).find("\"maxPerClient\":" + cap + ",") != std::string::npos);
  }
}

TEST_CASE("a written rule is one line with every field") {
  Rule rule;
  rule.resource = "a\nb";
  rule.flow_id = FlowId{5};
  rule.count = 3;
  CHECK(RuleToJson(rule) ==
        R"({"resource":"a\nb","limitApp":"default","grade":1,"count":3,"strategy":0,)"
        R"("controlBehavior":0,"warmUpPeriodSec":10,"maxQueueingTimeMs":500,"clusterMode":true,)"
        R"("clusterConfig":{"flowId":5,"thresholdType":0,"fallbackToLocalWhenFail":true,)"
        R"("strategy":0,"sampleCount":10,"windowIntervalMs":1000,"resourceTimeout":2000,)"
        R"("resourceTimeoutStrategy":0,"acquireRefuseStrategy":0,"clientOfflineTime":2000,)"
        R"("maxHoldMs":0,"maxPerClient":0,"shadow":false}})");
}

TEST_CASE("comments and unknown keys are tolerated") {
  const Rule rule = ParseOne(R"([
    // The orders database takes ten calls.
    {"resource": "orders", "count": 10, /* total */ "clusterMode": true, "gmtCreate": null,
     "refResource": "x", "id": 12, "app": {"nested": [1, 2]},
     "clusterConfig": {"flowId": 1, "windowCount": [], "somethingNew": {"a": {"b": 1}}}}
  ])");
  CHECK(rule.count == 10);
  CHECK(rule.flow_id == FlowId{1});
}

TEST_CASE("a key that is probably misspelt is ignored and named, and of many the first ten") {
  const auto parsed = ParseRules(R"([
    {"resource":"r","count":1,"clusterMode":true,"maxQueuingTimeMs":800,
     "clusterConfig":{"flowId":7,"max_per_client":3}},
    {"resource":"local","clusterMode":false,"maxQueuingTimeMs":800}
  ])");
  REQUIRE(parsed.status().ToString() == "ok");
  CHECK(parsed->rules.at(0).max_queueing_time_ms == 500);
  CHECK(parsed->rules[0].max_per_client == 0);
  CHECK(parsed->ignored.count() == 2);
  const std::string where = R"(rule 1 (resource "r", flowId 7): )";
  CHECK(parsed->Remarks() ==
        std::vector<std::string>{
            R"(rule 2 (resource "local") is skipped: clusterMode is false)",
            where + "'maxQueuingTimeMs' is not known and is ignored; did you mean "
                    "maxQueueingTimeMs?",
            where + "'clusterConfig.max_per_client' is not known and is ignored; did you mean "
                    "clusterConfig.maxPerClient?"});

  std::string many = "[";
  for (int i = 1; i <= 15; ++i) {
    many += R"({"resource":"r","count":1,"clusterMode":true,"Grade":0,"clusterConfig":{"flowId":)" +
            std::to_string(i) + "}}" + (i < 15 ? "," : "]");
  }
  const std::vector<std::string> lines = ParseRules(many)->Remarks();
  REQUIRE(lines.size() == 11);
  CHECK(lines[9].starts_with("rule 10 "));
  CHECK(lines[10] == "5 more keys are ignored");
}

TEST_CASE("null stands for a field that is not set") {
  const Rule rule = ParseOne(R"([{"resource":"r","limitApp":null,"grade":null,"count":1,
    "strategy":null,"controlBehavior":null,"warmUpPeriodSec":null,"maxQueueingTimeMs":null,
    "clusterMode":true,"clusterConfig":{"flowId":1,"thresholdType":null,"strategy":null,
    "fallbackToLocalWhenFail":null,"sampleCount":null,"windowIntervalMs":null,
    "resourceTimeout":null,"resourceTimeoutStrategy":null,"acquireRefuseStrategy":null,
    "clientOfflineTime":null,"maxHoldMs":null,"maxPerClient":null,"shadow":null}}])");
  Rule expected;
  expected.resource = "r";
  expected.count = 1;
  expected.flow_id = FlowId{1};
  CHECK(rule == expected);
}

TEST_CASE("numbers and booleans may be strings, as Sentinel's parser reads them") {
  const Rule rule = ParseOne(R"([{"resource":"r","grade":"0","count":"20.0","strategy":"1",
    "controlBehavior":"2","warmUpPeriodSec":"11","maxQueueingTimeMs":"1,000","clusterMode":"true",
    "clusterConfig":{"flowId":"1","thresholdType":"1","fallbackToLocalWhenFail":"false",
    "strategy":"4","sampleCount":"20","windowIntervalMs":"2000","resourceTimeout":"60000",
    "resourceTimeoutStrategy":"2","acquireRefuseStrategy":"3","clientOfflineTime":"7001.0",
    "maxPerClient":3.0,"shadow":"1"}}])");
  Rule expected;
  expected.resource = "r";
  expected.grade = 0;
  expected.count = 20;
  expected.strategy = 1;
  expected.control_behavior = 2;
  expected.warm_up_period_sec = 11;
  expected.max_queueing_time_ms = 1000;
  expected.flow_id = FlowId{1};
  expected.threshold_type = ThresholdType::kGlobal;
  expected.fallback_to_local_when_fail = false;
  expected.cluster_strategy = 4;
  expected.sample_count = 20;
  expected.window_interval_ms = 2000;
  expected.resource_timeout_ms = 60000;
  expected.resource_timeout_strategy = 2;
  expected.acquire_refuse_strategy = 3;
  expected.client_offline_time_ms = 7001;
  expected.max_per_client = 3;
  expected.shadow = true;
  CHECK(rule == expected);
}

TEST_CASE("an empty string and the word null stand for a number or boolean that is not set") {
  const Rule rule = ParseOne(R"([{"resource":"r","grade":"","count":1,"warmUpPeriodSec":"null",
    "clusterMode":true,"clusterConfig":{"flowId":1,"resourceTimeout":"NULL","shadow":""}}])");
  Rule expected;
  expected.resource = "r";
  expected.count = 1;
  expected.flow_id = FlowId{1};
  CHECK(rule == expected);
}

TEST_CASE("10.0 is the integer 10") {
  const Rule rule = ParseOne(R"([{"resource":"r","count":1,"clusterMode":true,
    "clusterConfig":{"flowId":42.0,"resourceTimeout":1.5e3,"sampleCount":5.0}}])");
  CHECK(rule.flow_id == FlowId{42});
  CHECK(rule.resource_timeout_ms == 1500);
  CHECK(rule.sample_count == 5);
}

TEST_CASE("additions that are switched off are accepted") {
  ParseOne(R"([{"resource":"r","count":1,"clusterMode":true,
    "clusterConfig":{"flowId":1,"maxPerClient":0,"shadow":false}}])");
}

TEST_CASE("a rule with clusterMode false is skipped and named, however wrong the rest of it is") {
  const auto parsed = ParseRules(R"([
    {"resource":"local","count":-1,"clusterMode":false},
    {"resource":"kept","count":1,"clusterMode":true,"clusterConfig":{"flowId":2}},
    {"resource":"text","clusterMode":"false","clusterConfig":{"flowId":"3"}},
    {"resource":5,"clusterMode":0,"clusterConfig":null}
  ])");
  REQUIRE(parsed.status().ToString() == "ok");
  REQUIRE(parsed->rules.size() == 1);
  CHECK(parsed->rules[0].resource == "kept");
  CHECK(parsed->skipped.count() == 3);
  CHECK(parsed->Remarks() ==
        std::vector<std::string>{
            R"(rule 1 (resource "local") is skipped: clusterMode is false)",
            R"(rule 3 (resource "text", flowId "3") is skipped: clusterMode is false)",
            R"(rule 4 is skipped: clusterMode is false)"});
}

TEST_CASE("an empty set has no rules, with comments, blanks and a byte order mark too") {
  for (const char* text : {"[]", " [ ] ", "// none\n[]", "\xef\xbb\xbf[]\r\n"}) {
    const auto parsed = ParseRules(text);
    REQUIRE(parsed.ok());
    CHECK(parsed->rules.empty());
    CHECK(parsed->Remarks().empty());
  }
}

TEST_CASE("a level that is rounded to 0 is warned of, with the clients that it takes") {
  const auto warnings = [](const std::string& count, int threshold_type) {
    const auto parsed = ParseRules(R"([{"resource":"r","grade":0,"clusterMode":true,"count":)" +
                                   count + R"(,"clusterConfig":{"flowId":1,"thresholdType":)" +
                                   std::to_string(threshold_type) + "}}]");
    REQUIRE(parsed.status().ToString() == "ok");
    return parsed->warned.Lines();
  };
  using Lines = std::vector<std::string>;
  const std::string where = R"(rule 1 (resource "r", flowId 1): )";
  const std::string refused = " is rounded down: the level is 0, and every acquire is refused";
  CHECK(warnings("0.5", 1) == Lines{where + "count 0.5" + refused});
  CHECK(warnings("\"0.99\"", 1) == Lines{where + "count 0.99" + refused});
  CHECK(warnings("0.3", 0) ==
        Lines{where + "count 0.3 for each client is rounded down: the level is 0 "
                      "while fewer than 4 clients are online"});
  CHECK(warnings("1e-300", 0)[0].ends_with("fewer than 1000000000 clients are online"));
  CHECK(warnings("1.5", 1) == Lines{where + "count 1.5 is rounded down to 1"});
  CHECK(warnings("1.5", 0).empty());
  for (const std::string count : {"0", "1", "0.9999999999999999"}) {
    CAPTURE(count);
    CHECK(warnings(count, 1).empty());
    CHECK(warnings(count, 0).empty());
  }
}

TEST_CASE("a key that comes twice in one object is warned of, and the last one counts") {
  const auto parsed = ParseRules(R"([
    {"resource":"a","count":1,"clusterMode":true,"clusterConfig":{"flowId":1}},
    {"resource":"b","count":7,"clusterMode":true,"count":8,"app":{"x":1,"x":2},
     "clusterConfig":{"flowId":2,"flowId":3,"thresholdType":0,"thresholdType":1}},
    {"resource":"c","clusterMode":false,"count":1,"count":2}
  ])");
  REQUIRE(parsed.status().ToString() == "ok");
  REQUIRE(parsed->rules.size() == 2);
  CHECK(parsed->rules[1].count == 8);
  CHECK(parsed->rules[1].flow_id == FlowId{3});
  CHECK(parsed->rules[1].threshold_type == ThresholdType::kGlobal);
  const std::string where = R"(rule 2 (resource "b", flowId 3): )";
  const std::string twice = " appears twice; the last one counts";
  CHECK(parsed->warned.Lines() ==
        std::vector<std::string>{where + "'count'" + twice, where + "'app.x'" + twice,
                                 where + "'clusterConfig.flowId'" + twice,
                                 where + "'clusterConfig.thresholdType'" + twice});
}

TEST_CASE("sixteen levels of nesting are accepted, one more is refused, a million end nothing") {
  const auto nested = [](int levels) {
    const std::string inner(static_cast<size_t>(levels), '[');
    return R"([{"resource":"r","count":1,"clusterMode":true,"clusterConfig":{"flowId":1,"x":)" +
           inner + std::string(static_cast<size_t>(levels), ']') + "}}]";
  };
  CHECK(ParseRules(nested(kRuleJsonNestingMax - 3)).status().ToString() == "ok");
  for (const int levels : {kRuleJsonNestingMax - 2, 1'000'000}) {
    const Status status = ParseRules(nested(levels)).status();
    CHECK(status.code() == StatusCode::kInvalidArgument);
    CHECK(status.message() == "JSON is nested deeper than 16 levels");
  }
}

}  // namespace
}  // namespace nowcalls::core
