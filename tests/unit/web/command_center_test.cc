#include "web/sentinel/command_center.h"

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "nowcalls_version.h"
#include "support/web_snapshots.h"

namespace nowcalls::web {
namespace {

using nlohmann::ordered_json;
using testing::Calls;
using testing::LookAt;
using testing::SnapshotAt;

wire::NamespaceRow NamespaceOf(const std::string& name, uint64_t online) {
  wire::NamespaceRow row;
  row.name_space = name;
  row.sessions_online = online;
  return row;
}

wire::SessionRow SessionOf(const std::string& name_space, const std::string& client, bool online) {
  wire::SessionRow row;
  row.name_space = name_space;
  row.client_id = client;
  row.online = online;
  return row;
}

// A command centre over a snapshot that a test makes.
struct Center {
  explicit Center(std::vector<std::string> peers = {}, const Calls& calls = {5, 2, 3, 300, 4})
      : source(SnapshotAt(0, {LookAt(7, "default", "pay", calls)})) {
    options.peers = std::move(peers);
    snapshot.namespaces = {NamespaceOf("default", 2), NamespaceOf("orders", 0)};
    snapshot.sessions = {SessionOf("default", "@10.0.0.7:51234", true),
                         SessionOf("default", "worker-1", true),
                         SessionOf("orders", "gone", false)};
  }

  Response Ask(const std::string& path, std::map<std::string, std::string> query = {},
               const std::string& peer = "127.0.0.1") {
    CommandCenter center(options, &source);
    center.SetTokenPort(18730);
    Request request;
    request.path = path;
    request.query = std::move(query);
    request.peer.host = peer;
    return center.Handle(request);
  }
  std::string Body(const std::string& path, std::map<std::string, std::string> query = {}) {
    const Response response = Ask(path, std::move(query));
    CHECK(response.status == 200);
    CHECK(response.type == "text/plain; charset=UTF-8");
    return response.body;
  }

  SentinelDashboardOptions options;
  testing::FixedSource source;
  Snapshot& snapshot = *source.snapshot;
};

TEST_CASE("the dashboard's requests for figures are answered") {
  Center center;
  CHECK(center.Body("/metric", {{"startTime", "1700000000000"},
                                {"endTime", "1700000006000"},
                                {"refetch", "false"}}) == "1700000000000|pay|5|2|3|0|100|0|4|0\n");
  CHECK(center.Body("/metric").empty());
  CHECK(center.Body("/metric", {{"startTime", "1700000001000"}}).empty());
  CHECK(center.Body("/metric", {{"startTime", "1"}, {"identity", "other"}}).empty());
  for (const char* wrong : {"x", "-1", "1x", "99999999999999999999"}) {
    CHECK(center.Ask("/metric", {{"startTime", wrong}}).status == 400);
    CHECK(center.Ask("/metric", {{"startTime", "1"}, {"endTime", wrong}}).status == 400);
  }
  // A dashboard that is there keeps sessions and rules at hand.
  CHECK(center.source.sessions);
  CHECK(center.source.rules);
}

TEST_CASE("the dashboard's requests for resources are answered") {
  Center center;
  const ordered_json nodes = ordered_json::parse(center.Body("/clusterNode", {{"type", "zero"}}));
  REQUIRE(nodes.size() == 1);
  CHECK(nodes[0]["resource"] == "pay");
  CHECK(nodes[0]["threadNum"] == 4);
  const ordered_json tree = ordered_json::parse(center.Body("/jsonTree", {{"type", "root"}}));
  REQUIRE(tree.size() == 3);
  CHECK(tree[0]["parentId"].is_null());
  CHECK(tree[2]["resource"] == "pay");
  Center idle({}, {});
  CHECK(idle.Body("/clusterNode", {{"type", "notZero"}}) == "[]");
  CHECK(idle.Body("/clusterNode", {{"type", "noZero"}}) != "[]");  // As Sentinel does.
}

TEST_CASE("the dashboard is shown a token server that is no client") {
  Center center;
  const ordered_json mode = ordered_json::parse(center.Body("/getClusterMode"));
  CHECK(mode["mode"] == 1);
  CHECK(mode["lastModified"].is_number_unsigned());
  CHECK(mode["clientAvailable"] == false);
  CHECK(mode["serverAvailable"] == true);
}

TEST_CASE("the dashboard is shown namespaces, connections and limits of the token server") {
  Center center;
  CHECK(center.Body("/cluster/server/info") ==
        R"({"appName":"nowcalls","port":18730,"embedded":false,)"
        R"("namespaceSet":["default","orders"],"transport":{"port":18730,"idleSeconds":0},)"
        R"("flow":{"exceedCount":1.0,"maxOccupyRatio":1.0,"intervalMs":1000,"sampleCount":10,)"
        R"("maxAllowedQps":30000},)"
        R"("connection":[{"namespace":"default","connectedCount":2,"connectionSet":[)"
        R"({"address":"10.0.0.7:51234","host":"10.0.0.7"},)"
        R"({"address":"worker-1","host":"worker-1"}]},)"
        R"({"namespace":"orders","connectedCount":0,"connectionSet":[]}],)"
        R"("requestLimitData":[{"namespace":"default","currentQps":0.0,"maxAllowedQps":30000},)"
        R"({"namespace":"orders","currentQps":0.0,"maxAllowedQps":30000}]})");
  // What the limit is about is calls a second.
  center.snapshot.flows[0].row.rate = wire::FlowRate{};
  const ordered_json info = ordered_json::parse(center.Body("/cluster/server/info"));
  CHECK(info["requestLimitData"][0]["currentQps"] == 7.0);
  CHECK(center.Body("/cluster/server/fetchConfig") ==
        R"({"transport":{"port":18730,"idleSeconds":0},"flow":{"exceedCount":1.0,)"
        R"("maxOccupyRatio":1.0,"intervalMs":1000,"sampleCount":10,"maxAllowedQps":30000},)"
        R"("namespaceSet":["default","orders"]})");
  CHECK(center.Body("/cluster/server/fetchConfig", {{"namespace", "orders"}}) ==
        R"({"flow":{"exceedCount":1.0,"maxOccupyRatio":1.0,"intervalMs":1000,"sampleCount":10,)"
        R"("maxAllowedQps":30000}})");
}

TEST_CASE("the dashboard is shown the guard that a namespace has of its own") {
  Center center;
  center.snapshot.namespaces[1].requests_max = 777;
  const ordered_json info = ordered_json::parse(center.Body("/cluster/server/info"));
  CHECK(info["flow"]["maxAllowedQps"] == 30'000);
  CHECK(info["requestLimitData"][0]["maxAllowedQps"] == 30'000);
  CHECK(info["requestLimitData"][1]["maxAllowedQps"] == 777);
  for (const auto& [name, allowed] :
       std::map<std::string, int>{{"default", 30'000}, {"orders", 777}, {"unknown", 30'000}}) {
    const ordered_json config =
        ordered_json::parse(center.Body("/cluster/server/fetchConfig", {{"namespace", name}}));
    CHECK(config["flow"]["maxAllowedQps"] == allowed);
  }
}

TEST_CASE("rules are shown once they are known, and never as none before") {
  Center center;
  const std::string rule =
      R"({"namespace":"default","resource":"pay","count":3,"clusterMode":true})";
  const std::string hot = R"({"namespace":"orders","resource":"hot","paramIdx":0,"count":4})";
  for (const auto& [path, type] : std::map<std::string, std::string>{
           {"/getRules", "flow"}, {"/getParamFlowRules", ""}, {"/cluster/server/flowRules", ""}}) {
    CHECK(center.Ask(path, {{"type", type}}).status == 503);
  }
  center.snapshot.rules =
      std::make_shared<const ordered_json>(ordered_json::parse("[" + rule + "," + hot + "]"));
  CHECK(center.Body("/getRules", {{"type", "flow"}}) == "[" + rule + "]");
  CHECK(center.Body("/getParamFlowRules") == "[" + hot + "]");
  CHECK(center.Body("/cluster/server/flowRules", {{"namespace", "orders"}}) == "[]");
  CHECK(center.Body("/cluster/server/flowRules") == "[" + rule + "]");
  CHECK(center.Body("/cluster/server/paramRules", {{"namespace", "orders"}}) == "[" + hot + "]");
  for (const char* type : {"degrade", "authority", "system"}) {
    CHECK(center.Body("/getRules", {{"type", type}}) == "[]");
  }
  CHECK(center.Ask("/getRules").status == 400);
}

TEST_CASE("commands that would set something are refused with what to do instead") {
  Center center;
  for (const char* name : {"setRules", "setParamFlowRules", "setClusterMode", "setSwitch",
                           "cluster/server/modifyNamespaceSet", "cluster/server/modifyFlowConfig",
                           "cluster/client/modifyConfig"}) {
    const Response refused = center.Ask("/" + std::string(name), {{"data", "[]"}});
    CHECK(refused.status == 400);
    CHECK(refused.body == std::string(name) +
                              ": nowcalls is read-only here. Its rules come from rule files or "
                              "`nowcalls-admin rules load`, its settings from its configuration");
  }
  CHECK_FALSE(center.source.sessions);
}

TEST_CASE("unknown commands are refused in Sentinel's words") {
  Center center;
  const std::map<std::string, std::string> cases = {
      {"/nothing", "Unknown command \"nothing\""},
      {"/cluster/server", "Unknown command \"cluster/server\""},
      {"/metric/", "Unknown command \"metric/\""},
      {"/\x1b[31m", "Unknown command \"\\x1b[31m\""},
      {"/", "Invalid command"},
      {"", "Invalid command"}};
  for (const auto& [path, body] : cases) {
    const Response refused = center.Ask(path);
    CHECK(refused.status == 400);
    CHECK(refused.type == "text/plain; charset=UTF-8");
    CHECK(refused.body == body);
  }
  CHECK(center.Ask("/" + std::string(10'000, 'x')).body.size() < 400);
}

TEST_CASE("only peers that are named may ask, if any are") {
  Center center({"10.0.0.9", "::1"});
  CHECK(center.Ask("/version", {}, "10.0.0.9").status == 200);
  CHECK(center.Ask("/version", {}, "::ffff:10.0.0.9").status == 200);
  CHECK(center.Ask("/version", {}, "::1").status == 200);
  const Response refused = center.Ask("/version", {}, "10.0.0.8");
  CHECK(refused.status == 403);
  CHECK(refused.body == "10.0.0.8 may not ask: sentinel-command-peers does not name it");
  CHECK(center.Ask("/version", {}, "").status == 403);
}

TEST_CASE("nothing is shown before the server was looked at") {
  Center center;
  center.snapshot = {};
  center.snapshot.problem = "the server does not serve yet";
  const Response none = center.Ask("/clusterNode");
  CHECK(none.status == 503);
  CHECK(none.body == "the server has not been asked yet: the server does not serve yet");
}

TEST_CASE("tools find out what there is") {
  Center center;
  CHECK(center.Body("/version") == NOWCALLS_VERSION);
  const ordered_json basic = ordered_json::parse(center.Body("/basicInfo"));
  CHECK(basic["ip"] == "127.0.0.1");
  CHECK(!basic["machine"].get<std::string>().empty());
  const ordered_json list = ordered_json::parse(center.Body("/api"));
  for (const ordered_json& command : list) {
    CHECK(!command["desc"].get<std::string>().empty());
    const std::string body = center.Ask(command["url"].get<std::string>()).body;
    CHECK(!body.starts_with("Unknown command"));
  }
  CHECK(list.size() == 14);
  const ordered_json metrics =
      ordered_json::parse(center.Body("/cluster/server/metricList", {{"namespace", "default"}}));
  CHECK(metrics["pay"][0]["flowId"] == 7);
  CHECK(center.Ask("/cluster/server/metricList").status == 400);
}

}  // namespace
}  // namespace nowcalls::web
