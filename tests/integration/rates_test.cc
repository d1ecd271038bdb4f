// Calls a second over the network: request and request_param, what shows them, and what of them
// survives the server.
#include <doctest/doctest.h>

#include <string>

#include "integration/calls.h"
#include "support/admin.h"
#include "support/poll_until.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

// Two calls a second in a window of 100 s: 200, of which none leaves the window within a test.
Json RateRule(int64_t flow) {
  return RuleJson(flow, 2, {{"windowIntervalMs", 100'000}, {"sampleCount", 10}});
}

Json ValueRule(int64_t flow) {
  Json rule = RateRule(flow);
  rule["grade"] = 1;
  rule["paramIdx"] = 0;
  rule["paramFlowItemList"] = {{{"object", "acme"}, {"count", 4}, {"classType", "String"}}};
  rule["clusterConfig"] = {
      {"flowId", flow}, {"thresholdType", 1}, {"windowIntervalMs", 100'000}, {"sampleCount", 10}};
  return rule;
}

Json Rate(RpcClient* client, int64_t flow) {
  return ResultOf(client, "flow", Json::array({flow})).at("rate");
}

TEST_CASE("request answers for the rule's window, and shows in flow, stat and info") {
  TestServer server(RateRule(1));
  RpcClient client = server.Connect();
  CHECK_FALSE(ResultOf(&client, "flow", Json::array({1})).contains("rate"));
  CHECK(ResultOf(&client, "request", {1, 150}) == Json{0, 50, 0, nullptr});
  CHECK(ResultOf(&client, "request", {1, 51}) == Json{1, 0, 0, "rate"});
  CHECK(ResultOf(&client, "request", {1, 50, true}) == Json{0, 0, 0, nullptr});
  CHECK(ResultOf(&client, "request", {2, 1}) == Json{3, 0, 0, nullptr});
  CHECK(ResultOf(&client, "request", {1, 0}) == Json{-4, 0, 0, nullptr});
  const Json rate = Rate(&client, 1);
  CHECK(rate.at("in_window") == 200);
  CHECK(rate.at("limit") == 200);
  CHECK(rate.at("window_ms") == 100'000);
  CHECK(rate.at("passed") == 200);
  CHECK(rate.at("blocked") == 51);
  CHECK(rate.at("requests_passed") == 2);
  CHECK(rate.at("requests_blocked") == 1);
  const Json row = ResultOf(&client, "flow", Json::array({1}));
  CHECK(row.at("counters").at("refused").at("rate") == 1);
  CHECK(row.at("other_kind") == 3);
  CHECK(server.server().LogHas("the rule of flow 1 says calls in progress (grade 0)"));
  const Json totals = ResultOf(&client, "info").at("totals");
  CHECK(totals.at("rate_passed") == 200);
  CHECK(totals.at("rate_blocked") == 51);
  CHECK(totals.at("other_kind") == 3);
}

TEST_CASE("request_param limits each value by itself, by its type") {
  TestServer server(ValueRule(1));
  RpcClient client = server.Connect();
  const auto ask = [&](int64_t count, const Json& values) {
    return ResultOf(&client, "request_param", Json::array({1, count, values}));
  };
  CHECK(ask(200, {"someone"}) == Json{0, 0, 0, nullptr});
  CHECK(ask(1, {"someone"}) == Json{1, 0, 0, "param", "someone"});
  CHECK(ask(300, {"acme"}) == Json{0, 100, 0, nullptr});
  CHECK(ask(200, {"5"}) == Json{0, 0, 0, nullptr});
  CHECK(ask(200, {5}) == Json{0, 0, 0, nullptr});
  CHECK(ask(200, {int64_t{5} << 32}) == Json{0, 0, 0, nullptr});
  CHECK(ask(1, {5}) == Json{1, 0, 0, "param", 5});
  CHECK(ask(1, {"new", "someone"}) == Json{1, 0, 0, "param", "someone"});
  CHECK(ask(401, {"acme"}) == Json{1, 0, 0, "over_level", "acme"});
  CHECK(ask(100, {"new", "acme"}) == Json{0, -1, 0, nullptr});
  CHECK(ask(1, Json::array()) == Json{-4, 0, 0, nullptr});
  CHECK(ResultOf(&client, "request", {1, 1}) == Json{-4, 0, 0, "param"});
  CHECK(Rate(&client, 1).at("values") == 6);
  // Those that are used most, for both kinds of users.
  const Json top = ResultOf(&client, "params", {1, 2});
  REQUIRE(top.size() == 1);
  REQUIRE(top[0].size() == 2);
  CHECK(top[0][0] == Json({{"param", "acme"},
                           {"now_calls", 0},
                           {"tokens", 0},
                           {"level", 4},
                           {"waiters", 0},
                           {"passed", 400},
                           {"blocked", 401},
                           {"minute_passed", 400},
                           {"minute_blocked", 401}}));
  CHECK(top[0][1].at("param") == "someone");
  CHECK(top[0][1].at("passed") == 200);
  CHECK(top[0][1].at("blocked") == 2);
  const Source live = Source::Live(server.address());
  const std::string table =
      RunAdmin(live, {"params", "--flow", "1", "--limit", "1", "--format", "table"}).out;
  CHECK(Contains(table, "LEVEL  WAITERS  PASSED  BLOCKED"));
  CHECK(Contains(table, "400"));
  CHECK(ResultOf(&client, "info").at("counts").at("param_values") == 6);
}

TEST_CASE("requests refuse parameters of another form and name them") {
  TestServer server(RateRule(1));
  RpcClient client = server.Connect();
  const struct {
    const char* method;
    Json params;
    std::string named;
  } cases[] = {
      {"request", Json::array({1}), "count"},
      {"request", {"", 1}, "flow_id"},
      {"request", {1, 1, 1}, "prioritized"},
      {"request", {1, 1, true, 1}, "parameters"},
      {"request_param", {1, 1}, "values"},
      {"request_param", {1, 1, "acme"}, "values"},
      {"request_param", {1, 1, Json::array({nullptr})}, "value"},
      {"request_param", {1, 1, Json::array({Json::array()})}, "value"},
      {"request_param", {1, 1, Json::array({std::string(1025, 'k')})}, "value"},
      {"request_param", {1, 1, Json::array({"acme"}), 1}, "parameters"},
  };
  for (const auto& bad : cases) {
    const Reply error = ErrorOf(&client, bad.method, bad.params);
    CAPTURE(bad.params.dump());
    CAPTURE(error.ToString());
    CHECK(error.error_code == kErrorBadParams);
    CHECK(Names(error, bad.named));
  }
}

TEST_CASE("a long window survives kill -9 once it is written, and an orderly end at once") {
  TestServer server(RateRule(1));
  RpcClient client = server.Connect();
  const auto batches = [&] { return ResultOf(&client, "info").at("ledger").at("batches"); };
  const Json before = batches();
  CHECK(ResultOf(&client, "request", {1, 150})[0] == kStatusOk);
  REQUIRE(PollUntil(kPatienceMs, [&] { return batches() > before; }));
  // The figure counts a batch that is still on its way; a ledger's answer waits for it.
  ResultOf(&client, "flow", Json::array({1}));
  server.server().Restart();
  client = server.Connect();
  CHECK(Rate(&client, 1).at("in_window") == 150);
  CHECK(ResultOf(&client, "request", {1, 51})[0] == kStatusBlocked);
  CHECK(ResultOf(&client, "request", {1, 50})[0] == kStatusOk);
  client.Close();
  CHECK(server.server().Terminate() == 0);
  server.server().Start();
  client = server.Connect();
  CHECK(ResultOf(&client, "request", {1, 1})[0] == kStatusBlocked);
}

}  // namespace
}  // namespace nowcalls::testing
