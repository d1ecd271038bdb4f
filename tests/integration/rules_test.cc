// Rules: sets that are replaced as a whole, by file and by request, while tokens are out.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "integration/calls.h"
#include "support/admin.h"
#include "support/server_process.h"
#include "test_paths.h"

namespace nowcalls::testing {
namespace {

Json FlowRow(RpcClient* client, int64_t flow_id) {
  return ResultOf(client, "flow", Json::array({flow_id}));
}

TEST_CASE("rules_load takes maps and JSON text, rules_list gives back what was loaded") {
  TestServer server;
  RpcClient client = server.Connect();
  CHECK(LoadRules(&client, {RuleJson(1, 10), RuleJson(2, 20)}) == Json::array({2}));
  const Json text = Json::array({RuleJson(3, 30)}).dump();
  CHECK(LoadRules(&client, text, "orders") == Json::array({1}));
  const auto rows = ListAll(&client, "rules_list", Json::array({nullptr}), 1);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].at("namespace") == "default");
  CHECK(rows[0].at("resource") == "resource-1");
  CHECK(rows[0].at("count") == 10);
  CHECK(rows[0].at("clusterMode") == true);
  CHECK(rows[0].at("clusterConfig").at("flowId") == 1);
  CHECK(rows[0].at("clusterConfig").at("thresholdType") == 1);
  CHECK(rows[0].at("clusterConfig").at("resourceTimeout") == 60'000);
  CHECK(rows[0].at("clusterConfig").at("sampleCount") == 10);
  const auto of_orders = ListAll(&client, "rules_list", Json::array({"orders"}));
  REQUIRE(of_orders.size() == 1);
  CHECK(of_orders[0].at("clusterConfig").at("flowId") == 3);
  // What is listed can be loaded again.
  CHECK(LoadRules(&client, Json(of_orders), "orders") == Json::array({1}));
  CHECK(ListAll(&client, "rules_list", Json::array({"orders"})) == of_orders);
}

TEST_CASE("a load replaces the whole set of its namespace and of no other") {
  TestServer server;
  RpcClient client = server.Connect();
  LoadRules(&client, {RuleJson(1, 10), RuleJson(2, 20)});
  LoadRules(&client, {RuleJson(3, 30)}, "orders");
  LoadRules(&client, {RuleJson(2, 25), RuleJson(4, 40)});
  CHECK(Acquire(&client, 1).status == kStatusNoRuleExists);
  CHECK(Acquire(&client, 2).level == 25);
  CHECK(Acquire(&client, 3).level == 30);
  CHECK(Acquire(&client, 4).level == 40);
  LoadRules(&client, Json::array());
  CHECK(Acquire(&client, 2).status == kStatusNoRuleExists);
  CHECK(Acquire(&client, 3).status == kStatusOk);
}

TEST_CASE("one invalid rule refuses the whole set, and the old one stays") {
  TestServer server({RuleJson(1, 10)});
  RpcClient client = server.Connect();
  const auto with = [](const std::string& name, const Json& value) {
    Json rule = RuleJson(7, 70);
    rule[name] = value;
    return rule;
  };
  const auto with_cluster = [](const std::string& name, const Json& value) {
    return RuleJson(7, 70, {{name, value}});
  };
  const struct {
    Json rule;
    std::string field;
  } cases[] = {
      {with("resource", " "), "resource"},
      {with("resource", 5), "resource"},
      {with("count", -1), "count"},
      {with("count", "ten"), "count"},
      {with("grade", 2), "grade"},
      {with("strategy", 9), "strategy"},
      {with("clusterMode", "yes"), "clusterMode"},
      {with("clusterMode", nullptr), "clusterMode"},
      {with("paramIdx", "first"), "paramIdx"},
      {Json({{"foo", 1}}), "no rule of a known kind"},
      {Json({{"resource", "r"}, {"count", 1}, {"timeWindow", 10}}), "DegradeRule"},
      {with("clusterConfig", Json::array()), "clusterConfig"},
      {with_cluster("flowId", 0), "clusterConfig.flowId"},
      {with_cluster("flowId", -3), "clusterConfig.flowId"},
      {with_cluster("thresholdType", 2), "clusterConfig.thresholdType"},
      {with_cluster("resourceTimeout", 0), "clusterConfig.resourceTimeout"},
      {with_cluster("clientOfflineTime", -5), "clusterConfig.clientOfflineTime"},
      {with_cluster("sampleCount", 0), "clusterConfig.sampleCount"},
      {with_cluster("windowIntervalMs", 1001), "clusterConfig.windowIntervalMs"},
      {with_cluster("resourceTimeoutStrategy", 3), "clusterConfig.resourceTimeoutStrategy"},
      {with_cluster("acquireRefuseStrategy", 4), "clusterConfig.acquireRefuseStrategy"},
  };
  for (const auto& bad : cases) {
    const Reply error = ErrorOf(&client, "rules_load",
                                {"default", Json::array({RuleJson(5, 50), bad.rule}).dump()});
    CAPTURE(error.ToString());
    CHECK(error.error_code == kErrorBadParams);
    CHECK(Names(error, "rule 2"));
    CHECK(Names(error, bad.field));
  }
  CHECK(Acquire(&client, 1).level == 10);
  CHECK(Acquire(&client, 5).status == kStatusNoRuleExists);
  CHECK(ListAll(&client, "rules_list", Json::array({nullptr})).size() == 1);
}

TEST_CASE("rules_load of a set that would limit nothing by mistake leaves the rules in force") {
  TestServer server({RuleJson(1, 10)});
  RpcClient client = server.Connect();
  Json misspelt = RuleJson(1, 10);
  misspelt.erase("clusterMode");
  misspelt["clustermode"] = true;
  Json local = RuleJson(1, 10);
  local["clusterMode"] = false;
  const struct {
    Json rules;
    std::string named;
  } cases[] = {
      {Json::array({misspelt}), "clusterMode"},
      {Json::array({local}), "0 of 1 rules apply"},
      {Json::array({Json({{"foo", 1}})}), "no rule of a known kind"},
      {Json::array({Json({{"highestCpuUsage", 0.8}})}), "SystemRule"},
      {"", "empty"},
      {"null", "[] removes all rules"},
  };
  for (const auto& bad : cases) {
    CAPTURE(bad.rules.dump());
    const Reply error = ErrorOf(&client, "rules_load", {"default", bad.rules});
    CAPTURE(error.ToString());
    CHECK(error.error_code == kErrorBadParams);
    CHECK(Names(error, bad.named));
    CHECK(Acquire(&client, 1).level == 10);
  }
}

TEST_CASE("rules_load reads numbers and booleans that are strings, as maps and as text") {
  TestServer server;
  RpcClient client = server.Connect();
  Json rule = RuleJson(1, 10, {{"flowId", "1"}, {"thresholdType", "1"}});
  rule["count"] = "20.0";
  rule["clusterMode"] = "true";
  CHECK(LoadRules(&client, {rule}) == Json::array({1}));
  CHECK(Acquire(&client, 1).level == 20);
  rule["count"] = "30";
  CHECK(LoadRules(&client, Json::array({rule}).dump()) == Json::array({1}));
  CHECK(Acquire(&client, 1).level == 30);
}

TEST_CASE("a load by RPC that removes rules in force is warned of in the log") {
  TestServer server({RuleJson(1, 10), RuleJson(2, 10)});
  RpcClient client = server.Connect();
  LoadRules(&client, Json::array());
  CHECK(server.server().LogHas("warn  namespace default: 2 rules in force removed: "));
}

TEST_CASE("rules_load refuses parameters of another form and names them") {
  TestServer server({RuleJson(1, 10)});
  RpcClient client = server.Connect();
  const struct {
    Json params;
    std::string named;
  } cases[] = {
      {Json::array(), "namespace"},
      {Json::array({"default"}), "rules"},
      {{"default", nullptr}, "rules"},
      {{"default", 5}, "rules"},
      {{"default", Json::object()}, "rules"},
      {{"default", "not json"}, "JSON"},
      {{"default", "{}"}, "array"},
      {{"default", "[5]"}, "rule 1"},
      {{"", Json::array()}, "namespace"},
      {{5, Json::array()}, "namespace"},
      {{"default", Json::array({RuleJson(4, 1), RuleJson(4, 2)})}, "flowId"},
  };
  for (const auto& bad : cases) {
    const Reply error = ErrorOf(&client, "rules_load", bad.params);
    CAPTURE(bad.params.dump());
    CAPTURE(error.ToString());
    CHECK(error.error_code == kErrorBadParams);
    CHECK(Names(error, bad.named));
  }
  CHECK(Acquire(&client, 1).level == 10);
}

TEST_CASE("a flow id that another namespace owns refuses the whole set") {
  TestServer server({RuleJson(1, 10)});
  RpcClient client = server.Connect();
  const Reply error =
      ErrorOf(&client, "rules_load", {"orders", Json::array({RuleJson(2, 20), RuleJson(1, 5)})});
  CAPTURE(error.ToString());
  CHECK(error.error_code == kErrorConflict);
  CHECK(Names(error, "flowId 1"));
  CHECK(Names(error, "default"));
  CHECK(Acquire(&client, 1).level == 10);
  CHECK(Acquire(&client, 2).status == kStatusNoRuleExists);
  // Once its owner lets go of it, the other namespace may have it.
  LoadRules(&client, Json::array());
  CHECK(LoadRules(&client, {RuleJson(1, 5)}, "orders") == Json::array({1}));
  CHECK(Acquire(&client, 1).level == 5);
}

TEST_CASE("a level below nowCalls refuses grants and lets the rest drain") {
  TestServer server({RuleJson(1, 10)});
  RpcClient alice = server.Connect("alice");
  const Grant big = Acquire(&alice, 1, 6);
  const Grant small = Acquire(&alice, 1, 2);
  LoadRules(&alice, {RuleJson(1, 3)});
  CHECK(NowCalls(&alice, 1) == 8);
  const Grant refused = Acquire(&alice, 1);
  CHECK(refused.status == kStatusBlocked);
  CHECK(refused.level == 3);
  CHECK(refused.now_calls == 8);
  CHECK(Keep(&alice, small.token_id) == kStatusOk);
  CHECK(Release(&alice, big.token_id) == kStatusReleaseOk);
  CHECK(Acquire(&alice, 1, 2).status == kStatusBlocked);
  CHECK(Acquire(&alice, 1, 1).status == kStatusOk);
  CHECK(NowCalls(&alice, 1) == 3);
}

TEST_CASE("a level of zero refuses everything") {
  TestServer server({RuleJson(1, 0)});
  RpcClient alice = server.Connect("alice");
  CHECK(Acquire(&alice, 1).status == kStatusBlocked);
}

TEST_CASE("a removed rule refuses grants, its tokens stay listed and can be released") {
  TestServer server({RuleJson(1, 10), RuleJson(2, 5)});
  RpcClient alice = server.Connect("alice");
  const Grant one = Acquire(&alice, 1, 4);
  const Grant two = Acquire(&alice, 1, 2);
  LoadRules(&alice, {RuleJson(2, 5)});
  CHECK(Acquire(&alice, 1).status == kStatusNoRuleExists);
  CHECK(ListAll(&alice, "tokens", Json::array({{{"flow_id", 1}}})).size() == 2);
  const Json flow = FlowRow(&alice, 1);
  CHECK(flow.at("removed") == true);
  CHECK(flow.at("now_calls") == 6);
  CHECK(flow.at("tokens") == 2);
  CHECK(Keep(&alice, one.token_id) == kStatusOk);

  SUBCASE("the flow is gone with its last token") {
    CHECK(Release(&alice, one.token_id) == kStatusReleaseOk);
    CHECK(Release(&alice, two.token_id) == kStatusReleaseOk);
    CHECK(ErrorOf(&alice, "flow", Json::array({1})).error_code == kErrorBadParams);
  }
  SUBCASE("added again it finds them counted") {
    LoadRules(&alice, {RuleJson(1, 7), RuleJson(2, 5)});
    CHECK(FlowRow(&alice, 1).at("removed") == false);
    CHECK(Acquire(&alice, 1, 2).status == kStatusBlocked);
    CHECK(Acquire(&alice, 1, 1).now_calls == 7);
    CHECK(Release(&alice, one.token_id) == kStatusReleaseOk);
    CHECK(NowCalls(&alice, 1) == 3);
  }
  SUBCASE("after a restart too") {
    server.server().Restart();
    RpcClient again(server.address());
    CHECK(ResultOf(&again, "hello", {1, "default", "alice"}).at(3) == 2);
    LoadRules(&again, {RuleJson(1, 10), RuleJson(2, 5)});
    CHECK(Acquire(&again, 1, 5).status == kStatusBlocked);
    CHECK(Release(&again, one.token_id) == kStatusReleaseOk);
    CHECK(Release(&again, two.token_id) == kStatusReleaseOk);
    CHECK(NowCalls(&again, 1) == 0);
  }
}

TEST_CASE("tokens of a removed rule survive a restart and are swept in the end") {
  TestServer server(nullptr, {{"--restart-grace-ms", "300"}, {}});
  RpcClient alice = server.Connect("alice");
  LoadRules(&alice, {RuleJson(1, 10, {{"resourceTimeout", 1'000}}), RuleJson(2, 10)});
  Acquire(&alice, 1, 4);
  const Grant kept = Acquire(&alice, 2, 3);
  LoadRules(&alice, Json::array());
  server.server().Restart();
  RpcClient again = server.Connect("alice");
  CHECK(ListAll(&again, "tokens", Json::array({{{"flow_id", 2}}})).size() == 1);
  CHECK(Keep(&again, kept.token_id) == kStatusOk);
  CHECK(PollUntil(kPatienceMs, [&] {
    return ListAll(&again, "tokens", Json::array({{{"flow_id", 1}}})).empty();
  }));
  CHECK(Release(&again, kept.token_id) == kStatusReleaseOk);
  CHECK(ListAll(&again, "flows").empty());
}

TEST_CASE("rules live in the ledger: a restart without the file still has them") {
  TempDir dir;
  WriteStringToFile(dir.Sub("rules.json"), RuleSet({RuleJson(1, 10), RuleJson(2, 5)}).dump());
  TestServer server(nullptr, {{"--rules", dir.Sub("rules.json")}, {}});
  server.server().options().arguments.clear();
  server.server().Restart();
  RpcClient client = server.Connect();
  CHECK(Acquire(&client, 1).level == 10);
  CHECK(Acquire(&client, 2).level == 5);
  LoadRules(&client, {RuleJson(2, 6)});
  server.server().Restart();
  RpcClient again = server.Connect();
  CHECK(Acquire(&again, 1).status == kStatusNoRuleExists);
  CHECK(Acquire(&again, 2).level == 6);
}

TEST_CASE("a rule file as Sentinel's dashboard writes it, with its extra keys, is loaded") {
  TestServer server;
  WriteStringToFile(server.Sub("dashboard.json"), R"([
    // The dashboard keeps its own bookkeeping beside the rule.
    {"id": 1, "app": "shop", "ip": "10.0.0.7", "port": 8719, "gmtCreate": "2020-06-01T10:00:00",
     "gmtModified": null, "limitApp": "default", "resource": "/orders", "grade": 0, "count": 12.0,
     "strategy": 0, "refResource": null, "controlBehavior": 0, "warmUpPeriodSec": null,
     "maxQueueingTimeMs": null, "clusterMode": true, "controller": {"name": "x"},
     "clusterConfig": {"strategy": 0, "flowId": 41, "thresholdType": 1,
                       "fallbackToLocalWhenFail": true, "sampleCount": 10, "somethingNew": [1, 2]}},
    {"resource": "/local-only", "count": 3, "clusterMode": false}
  ])");
  auto& arguments = server.server().options().arguments;
  arguments.insert(arguments.end(), {"--rules", "shop=" + server.Sub("dashboard.json")});
  server.server().Restart();
  RpcClient client = server.Connect("till-1", "shop");
  const Grant grant = Acquire(&client, 41);
  CHECK(grant.level == 12);
  CHECK(grant.hold_ms == 4'000);
  CHECK(ListAll(&client, "rules_list", Json::array({"shop"})).size() == 1);
  CHECK(server.server().LogHas("/local-only"));
}

TEST_CASE("the sample rules of the source tree are loaded") {
  TestServer server(nullptr,
                    {{"--rules", "shop=" NOWCALLS_SOURCE_DIR "/data/rules/shop.json"}, {}});
  RpcClient client = server.Connect("till-1", "shop");
  CHECK(Acquire(&client, 1001).status == kStatusOk);
}

TEST_CASE("rules of every kind are listed as they were loaded, and the ledger keeps them") {
  const std::string dir = NOWCALLS_SOURCE_DIR "/data/rules/";
  TestServer server(
      nullptr,
      {{"--rules", "keys=" + dir + "api-keys.json", "--rules", "go=" + dir + "go.json"}, {}});
  RpcClient client = server.Connect();
  const std::vector<Json> rows = ListAll(&client, "rules_list", Json::array({"go"}));
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].at("statIntervalInMs") == 10'000);
  CHECK(rows[0].at("threshold") == 3000);
  CHECK(rows[1].at("specificItems") ==
        Json::parse(R"([{"valKind":0,"valStr":"9001","threshold":500},
                        {"valKind":1,"valStr":"anonymous","threshold":10}])"));
  CHECK(rows[2].at("specificItems") ==
        Json::parse(R"([{"valKind":1,"valStr":"trial","threshold":5}])"));
  const std::vector<Json> keys = ListAll(&client, "rules_list", Json::array({"keys"}));
  REQUIRE(keys.size() == 2);
  CHECK(keys[1].at("paramFlowItemList") ==
        Json::parse(R"([{"object":"1001","count":50,"classType":"int"}])"));
  const auto diff = [&](const std::string& name) {
    return RunAdmin(
        Source::Live(server.server().address()),
        {"rules", "diff", "--namespace", name, dir + (name == "go" ? "go.json" : "api-keys.json")});
  };
  CHECK(diff("go").exit_code == 0);
  CHECK(diff("keys").exit_code == 0);

  server.server().options().arguments.clear();
  server.server().Restart();
  RpcClient again = server.Connect();
  CHECK(ListAll(&again, "rules_list", Json::array({"go"})) == rows);
  CHECK(ListAll(&again, "rules_list", Json::array({"keys"})) == keys);
  // What is listed can be loaded, as maps.
  CHECK(LoadRules(&again, Json(keys), "keys") == Json::array({2}));
  CHECK(LoadRules(&again, Json(rows), "go") == Json::array({4}));
  CHECK(ListAll(&again, "rules_list", Json::array({"go"})) == rows);
  CHECK(ListAll(&again, "rules_list", Json::array({"keys"})) == keys);
}

TEST_CASE("a rule with as many values as it may have, of any length, is listed and compared") {
  constexpr size_t kItems = 1000;
  constexpr size_t kValueBytes = 1024;
  TestServer server;
  Json items = Json::array();
  for (size_t i = 0; i < kItems; ++i) {
    std::string value = std::to_string(i) + "\u00e9";
    value.resize(kValueBytes, '\x01');
    items.push_back({{"object", value}, {"count", i}});
  }
  const Json rule = {{"resource", "r"},     {"paramIdx", 0},
                     {"count", 1},          {"paramFlowItemList", items},
                     {"clusterMode", true}, {"clusterConfig", {{"flowId", 1}}}};
  const std::string path = server.Sub("rules.json");
  WriteStringToFile(path, RuleSet({rule}).dump());
  auto& arguments = server.server().options().arguments;
  arguments.insert(arguments.end(), {"--rules", path});
  server.server().Restart();
  const Source source = Source::Live(server.server().address());
  CHECK(AdminRows(source, {"rules", "list"}).at(0).at("paramFlowItemList").size() == kItems);
  CHECK(RunAdmin(source, {"rules", "diff", path, "--namespace", "default"}).exit_code == 0);
}

}  // namespace
}  // namespace nowcalls::testing
