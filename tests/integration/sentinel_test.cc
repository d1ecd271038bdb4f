// Sentinel's clients with the real server.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "integration/calls.h"
#include "support/golden.h"
#include "support/sentinel_client.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

constexpr int64_t kStatusNotAvailable = 5;
constexpr int64_t kFlow = 111;

Json LastingRule(double count, const Json& cluster = Json::object()) {
  Json all = {{"resourceTimeout", 600'000}, {"clientOfflineTime", 600'000}};
  for (const auto& [name, value] : cluster.items()) all[name] = value;
  return RuleJson(kFlow, count, all);
}

SentinelClient Pinged(const TestServer& server, const std::string& name_space = "default") {
  SentinelClient client(server.address());
  CHECK(client.Ping(name_space).status == kStatusOk);
  return client;
}

TEST_CASE("a Sentinel client pings, asks for calls, and takes, keeps and releases a token") {
  TestServer server(LastingRule(5));
  SentinelClient client(server.address());
  CHECK(client.Ping("default").ToString() == "type 0 status 0 data 01");
  CHECK(client.Flow(kFlow, 2).ToString() == "type 1 status 0 data 0000000300000000");
  const SentinelAnswer grant = client.Acquire(kFlow, 5);
  CHECK(grant.type == 3);
  CHECK(grant.status == kStatusOk);
  CHECK(grant.token() > 0);
  CHECK(client.Acquire(kFlow).ToString() == "type 3 status 1 data 0000000000000000");
  CHECK(client.Keep(grant.token()).ToString() == "type 5 status 0");
  CHECK(client.Release(grant.token()).ToString() == "type 4 status 6");
  CHECK(client.Release(grant.token()).ToString() == "type 4 status 7");
  CHECK(client.Acquire(kFlow + 1).status == kStatusNoRuleExists);
}

TEST_CASE("Sentinel's clients and those of MessagePack-RPC share rules, tokens and sessions") {
  TestServer server(LastingRule(3));
  SentinelClient sentinel = Pinged(server);
  RpcClient rpc = server.Connect("worker");
  const SentinelAnswer grant = sentinel.Acquire(kFlow, 2);
  CHECK(grant.status == kStatusOk);
  CHECK(NowCalls(&rpc, kFlow) == 2);
  CHECK(Acquire(&rpc, kFlow, 2).status == kStatusBlocked);
  const Grant last = Acquire(&rpc, kFlow);
  CHECK(last.now_calls == 3);
  CHECK(sentinel.Acquire(kFlow).status == kStatusBlocked);
  // Neither reaches what the other holds.
  CHECK(Release(&rpc, static_cast<uint64_t>(grant.token())) == kStatusAlreadyRelease);
  CHECK(sentinel.Release(static_cast<int64_t>(last.token_id)).status == kStatusAlreadyRelease);
  CHECK(NowCalls(&rpc, kFlow) == 3);
  CHECK(sentinel.Ping("default").Number(0, 1) == 2);

  const std::vector<Json> sessions = ListAll(&rpc, "sessions");
  REQUIRE(sessions.size() == 2);
  std::set<std::string> kinds;
  for (const Json& session : sessions) kinds.insert(session.at("kind").get<std::string>());
  CHECK(kinds == std::set<std::string>{"connection", "named"});
  const Json info = ResultOf(&rpc, "info");
  CHECK(info.at("counts").at("connections_by_protocol").dump() ==
        R"({"messagepack_rpc":1,"sentinel":1})");
  CHECK(info.at("totals").at("sentinel_requests").at("acquire") == 2);
}

TEST_CASE("Sentinel's tokens survive a kill, and a client from another port releases them") {
  TestServer server(LastingRule(2));
  SentinelClient before = Pinged(server);
  const int64_t token = before.Acquire(kFlow).token();
  CHECK(token > 0);
  server.server().Restart();
  RpcClient rpc = server.Connect();
  CHECK(NowCalls(&rpc, kFlow) == 1);
  SentinelClient after = Pinged(server);
  CHECK(after.Acquire(kFlow, 2).status == kStatusBlocked);
  CHECK(after.Release(token).status == kStatusReleaseOk);
  CHECK(NowCalls(&rpc, kFlow) == 0);
}

TEST_CASE("a prioritized Sentinel acquire waits for room, at most as long as the server is told") {
  for (const char* wait_ms : {"600000", "1"}) {
    TestServer server(
        [] {
          Json rule = LastingRule(1, {{"acquireRefuseStrategy", 3}});
          rule["maxQueueingTimeMs"] = 600'000;
          return rule;
        }(),
        {{"--sentinel-wait-ms-max", wait_ms}, {}});
    SentinelClient client = Pinged(server);
    const int64_t token = client.Acquire(kFlow).token();
    const int32_t xid = client.Send(3, BigEndian(kFlow, 8) + BigEndian(1, 4) + BigEndian(1, 1));
    if (std::string(wait_ms) == "1") {
      CHECK(client.Receive().ToString() == "type 3 status 1 data 0000000000000000");
      continue;
    }
    CHECK(client.Release(token).status == kStatusReleaseOk);
    const SentinelAnswer late = client.Receive();
    CHECK(late.xid == xid);
    CHECK(late.status == kStatusOk);
    CHECK(late.token() > 0);
  }
}

TEST_CASE("a Sentinel acquire that waits is answered NOT_AVAILABLE when the server ends") {
  Json rule = LastingRule(1, {{"acquireRefuseStrategy", 3}});
  rule["maxQueueingTimeMs"] = 600'000;
  TestServer server(rule, {{"--sentinel-wait-ms-max", "600000"}, {}});
  SentinelClient client = Pinged(server);
  client.Acquire(kFlow);
  client.Send(3, BigEndian(kFlow, 8) + BigEndian(1, 4) + BigEndian(1, 1));
  RpcClient rpc = server.Connect();
  REQUIRE(
      PollUntil(kPatienceMs, [&] { return ResultOf(&rpc, "flow", {kFlow}).at("waiters") == 1; }));
  CHECK(server.server().Terminate() == 0);
  CHECK(client.Receive().status == kStatusNotAvailable);
}

TEST_CASE("a namespace has as many requests for calls a second as --namespace-qps-max says") {
  TestServer server(LastingRule(1000), {{"--namespace-qps-max", "3"}, {}});
  SentinelClient client = Pinged(server);
  std::map<int, int> statuses;
  for (int i = 0; i < 20; ++i) ++statuses[client.Flow(kFlow).status];
  CHECK(statuses[static_cast<int>(kStatusOk)] >= 3);
  CHECK(statuses[static_cast<int>(kStatusTooManyRequest)] > 0);
}

TEST_CASE("a PARAM_FLOW counts each value by itself, with whoever asks for it") {
  // An hour, so that no window ends meanwhile.
  TestServer server(Json{{"resource", "by-key"},
                         {"grade", 1},
                         {"count", 2.0 / 3600},
                         {"paramIdx", 0},
                         {"durationInSec", 1},
                         {"clusterMode", true},
                         {"clusterConfig",
                          {{"flowId", kFlow},
                           {"thresholdType", 1},
                           {"sampleCount", 1},
                           {"windowIntervalMs", 3'600'000}}}});
  SentinelClient client = Pinged(server);
  CHECK(client.ParamFlow(kFlow, "key-a").ToString() == "type 2 status 0 data 0000000100000000");
  RpcClient rpc = server.Connect();
  CHECK(ResultOf(&rpc, "request_param", {kFlow, 1, {"key-a"}}).at(0) == kStatusOk);
  CHECK(client.ParamFlow(kFlow, "key-a").status == kStatusBlocked);
  CHECK(client.ParamFlow(kFlow, "key-b", 2).status == kStatusOk);
  CHECK(client.ParamFlow(kFlow, "").status == kStatusOk);
  CHECK(client.Flow(kFlow).status == kStatusBadRequest);
}

TEST_CASE("golden frames that are cut, or come all in one segment, are answered by the server") {
  TestServer server(RuleJson(kFlow, 5));
  const auto frames = LoadGolden(GoldenPath("sentinel_frames.hex"));
  int checked = 0;
  for (const auto& frame : frames) {
    const std::string& name = frame.first;
    const std::string& bytes = frame.second;
    if (name.find("param") != std::string::npos || name == "segment") continue;
    const auto answer = frames.find(name + "_answer");
    if (answer == frames.end() || name.starts_with("flow")) continue;
    CAPTURE(name);
    SentinelClient client(server.address());
    REQUIRE(client.SendRaw(bytes + bytes.substr(0, bytes.size() / 2)));
    const SentinelAnswer got = client.Receive();
    REQUIRE(got.came);
    CHECK(got.type == static_cast<int8_t>(answer->second[6]));
    CHECK(got.status == static_cast<int8_t>(answer->second[7]));
    REQUIRE(client.SendRaw(bytes.substr(bytes.size() / 2)));
    CHECK(client.Receive().status == got.status);
    ++checked;
  }
  CHECK(checked > 30);
}

TEST_CASE("garbage in Sentinel's frames leaves the server well") {
  TestServer server(LastingRule(5));
  for (int round = 0; round < 20; ++round) {
    SentinelClient client(server.address());
    std::string bytes(1, static_cast<char>(round % 4));
    for (int i = 0; i < 5000; ++i) bytes += static_cast<char>((i * 7919 + round * 104'729) >> 3);
    client.SendRaw(bytes);
  }
  SentinelClient client = Pinged(server);
  CHECK(client.Acquire(kFlow).status == kStatusOk);
  RpcClient rpc = server.Connect();
  CHECK(NowCalls(&rpc, kFlow) == 1);
}

}  // namespace
}  // namespace nowcalls::testing
