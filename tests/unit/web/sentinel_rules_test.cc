#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "web/sentinel/dashboard_rules.h"

namespace nowcalls::web {
namespace {

using nlohmann::ordered_json;

// As rules_list has them: Java's and sentinel-golang's, of both kinds.
const ordered_json& Rules() {
  static const ordered_json rules = ordered_json::parse(R"([
    {"namespace": "default", "resource": "pay", "limitApp": "default", "grade": 0, "count": 2.5,
     "strategy": 0, "controlBehavior": 0, "clusterMode": true, "clusterConfig": {"flowId": 1}},
    {"namespace": "orders", "resource": "get", "limitApp": "default", "grade": 1, "paramIdx": 0,
     "count": 10, "paramFlowItemList": [{"object": "a", "count": 3, "classType": "int"}],
     "clusterMode": true, "clusterConfig": {"flowId": 2}},
    {"namespace": "orders", "resource": "go", "tokenCalculateStrategy": 0, "controlBehavior": 0,
     "threshold": 7, "relationStrategy": 0, "maxQueueingTimeMs": 0, "clusterMode": true,
     "clusterConfig": {"flowId": 3}},
    {"namespace": "orders", "resource": "hot", "metricType": 1, "controlBehavior": 0,
     "paramIndex": 1, "paramKey": "", "threshold": 9, "durationInSec": 1,
     "specificItems": [{"valKind": 0, "valStr": "4", "threshold": 8},
                       {"valKind": 1, "valStr": "x", "threshold": 0},
                       {"valKind": 2, "valStr": "true", "threshold": 1},
                       {"valKind": 3, "valStr": "0.5", "threshold": 2}],
     "clusterMode": true, "clusterConfig": {"flowId": 4}}])");
  return rules;
}

TEST_CASE("Java's rules are shown as they were loaded") {
  CHECK(RulesForDashboard(Rules(), DashboardRules::kFlow, "default") ==
        ordered_json::array({Rules()[0]}));
  CHECK(RulesForDashboard(Rules(), DashboardRules::kHotParameter, "")[0] == Rules()[1]);
}

TEST_CASE("sentinel-golang's rules are shown in Java's form") {
  CHECK(RulesForDashboard(Rules(), DashboardRules::kFlow, "orders").dump() ==
        R"([{"namespace":"orders","resource":"go","tokenCalculateStrategy":0,"controlBehavior":0,)"
        R"("count":7,"strategy":0,"maxQueueingTimeMs":0,"clusterMode":true,)"
        R"("clusterConfig":{"flowId":3},"grade":1,"limitApp":"default"}])");
  CHECK(RulesForDashboard(Rules(), DashboardRules::kHotParameter, "orders")[1].dump() ==
        R"({"namespace":"orders","resource":"hot","grade":1,"controlBehavior":0,"paramIdx":1,)"
        R"("paramKey":"","count":9,"durationInSec":1,"paramFlowItemList":[)"
        R"({"object":"4","count":8,"classType":"long"},)"
        R"({"object":"x","count":0,"classType":"java.lang.String"},)"
        R"({"object":"true","count":1,"classType":"boolean"},)"
        R"({"object":"0.5","count":2,"classType":"double"}],)"
        R"("clusterMode":true,"clusterConfig":{"flowId":4},"limitApp":"default"})");
}

TEST_CASE("rules of all namespaces are shown when none is named") {
  CHECK(RulesForDashboard(Rules(), DashboardRules::kFlow, "").size() == 2);
  CHECK(RulesForDashboard(Rules(), DashboardRules::kHotParameter, "").size() == 2);
  CHECK(RulesForDashboard(Rules(), DashboardRules::kFlow, "nobody").dump() == "[]");
}

TEST_CASE("what is no rule is passed over") {
  const ordered_json odd = ordered_json::parse(R"([1, null, [], "text"])");
  CHECK(RulesForDashboard(odd, DashboardRules::kFlow, "").dump() == "[]");
}

}  // namespace
}  // namespace nowcalls::web
