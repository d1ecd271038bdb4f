// Concurrency per value of a parameter with the real server: an LLM gateway with a level per API
// key, its queues, its listings, and a server that is killed.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/prng.h"
#include "integration/calls.h"
#include "support/admin.h"
#include "support/poll_until.h"
#include "support/process.h"
#include "support/sample.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

constexpr int64_t kChat = 4001;

// `level` calls in progress for each API key; one of them has less.
Json ChatRule(int64_t level) {
  Json rule = RuleJson(kChat, static_cast<double>(level),
                       {{"resourceTimeout", 600'000}, {"clientOfflineTime", 600'000}});
  rule["paramIdx"] = 0;
  rule["paramFlowItemList"] =
      Json::array({{{"object", "batch"}, {"count", 1}, {"classType", "java.lang.String"}}});
  return rule;
}

// "OK 1/10" or "BLOCKED param 10/10" as [status, refused_by, now_calls, level].
Json AskForKey(RpcClient* client, const Json& param, Json options = Json::object()) {
  options["param"] = param;
  const Json result = ResultOf(client, "acquire", {kChat, 1, options});
  return {result[0], result[6], result[3], result[4]};
}

std::map<std::string, int64_t> NowCallsByKey(RpcClient* client) {
  std::map<std::string, int64_t> now_calls;
  for (const Json& row : ListAll(client, "tokens", Json::array({nullptr}))) {
    now_calls[row.at("param").get<std::string>()] += row.at("count").get<int64_t>();
  }
  return now_calls;
}

TEST_CASE("each API key has a level of its own, and the types of keys are told apart") {
  TestServer server(ChatRule(2));
  RpcClient gateway = server.Connect("gateway");
  CHECK(AskForKey(&gateway, "alice") == Json({0, nullptr, 1, 2}));
  CHECK(AskForKey(&gateway, "alice") == Json({0, nullptr, 2, 2}));
  CHECK(AskForKey(&gateway, "alice") == Json({1, "param", 2, 2}));
  CHECK(AskForKey(&gateway, "batch") == Json({0, nullptr, 1, 1}));
  CHECK(AskForKey(&gateway, "batch") == Json({1, "param", 1, 1}));
  for (const Json& key : {Json(7), Json("7"), Json(7.5), Json(true), Json(int64_t{1} << 40)}) {
    CAPTURE(key.dump());
    CHECK(AskForKey(&gateway, key) == Json({0, nullptr, 1, 2}));
  }
  CHECK(Acquire(&gateway, kChat).refused_by == "param");
  const Json flow = ResultOf(&gateway, "flow", {kChat});
  CHECK(flow.at("keys") == 7);
  CHECK(flow.at("now_calls") == 8);
  CHECK_FALSE(flow.contains("level"));
  const auto tokens = ListAll(&gateway, "tokens", Json::array({nullptr}));
  REQUIRE(tokens.size() == 8);
  CHECK(tokens[0].at("param") == "alice");
  CHECK(tokens[3].at("param") == 7);
  const Json first = ResultOf(&gateway, "params", {kChat, 1}).at(0).at(0);
  CHECK(first ==
        Json({{"param", "alice"}, {"now_calls", 2}, {"tokens", 2}, {"level", 2}, {"waiters", 0}}));
}

TEST_CASE("a full key does not delay those who wait for another") {
  TestServer server(ChatRule(1));
  RpcClient holder = server.Connect("holder");
  RpcClient alice = server.Connect("alice");
  RpcClient bob = server.Connect("bob");
  CHECK(AskForKey(&holder, "alice").at(0) == kStatusOk);
  const Json held = ResultOf(&holder, "acquire", {kChat, 1, {{"param", "bob"}}});
  alice.Send("acquire", {kChat, 1, {{"param", "alice"}, {"wait_ms", 60'000}}});
  bob.Send("acquire", {kChat, 1, {{"param", "bob"}, {"wait_ms", 60'000}}});
  REQUIRE(PollUntil(kPatienceMs,
                    [&] { return ResultOf(&holder, "flow", {kChat}).at("waiters") == 2; }));
  CHECK(Release(&holder, held[1].get<uint64_t>()) == kStatusReleaseOk);
  const Reply granted = bob.Receive();
  REQUIRE(granted.ok());
  CHECK(granted.result.at(0) == kStatusOk);
  const Json row = ResultOf(&holder, "params", {kChat, 10}).at(0).at(0);
  CHECK(row.at("param") == "alice");
  CHECK(row.at("waiters") == 1);
  const Source live = Source::Live(server.address());
  const Json waiter = Json::parse(RunAdmin(live, {"waiters", "--format", "jsonl"}).out);
  CHECK(waiter.at("flow_id") == kChat);
  CHECK(waiter.at("client_id") == "alice");
  CHECK(waiter.at("param") == "alice");
  CHECK(waiter.at("place") == 1);
  CHECK(waiter.at("deadline_ms").get<int64_t>() - waiter.at("since_ms").get<int64_t>() == 60'000);
  CHECK(RunAdmin(live, {"waiters", "--client", "bob", "--format", "jsonl"}).out.empty());
}

constexpr char kParamColumns[] =
    "param,now_calls,tokens,level,waiters,passed,blocked,minute_passed,minute_blocked\n";

TEST_CASE("nowcalls-admin shows the keys of a flow, live and from its files") {
  TestServer server(ChatRule(3));
  RpcClient gateway = server.Connect("gateway");
  for (const char* key : {"bob", "alice", "alice", "=1+1"}) AskForKey(&gateway, key);
  const Source live = Source::Live(server.address());
  const Source offline = Source::Offline(server.data_dir());
  const std::string flow = std::to_string(kChat);
  CHECK(RunAdmin(live, {"params", "--flow", flow, "--format", "csv"}).out ==
        std::string(kParamColumns) + "alice,2,2,3,0,,,,\nbob,1,1,3,0,,,,\n'=1+1,1,1,3,0,,,,\n");
  CHECK(RunAdmin(offline, {"params", "--flow", flow, "--format", "csv"}).out ==
        std::string(kParamColumns) + "alice,2,2,3,,,,,\n'=1+1,1,1,3,,,,,\nbob,1,1,3,,,,,\n");
  CHECK(Contains(RunAdmin(live, {"params", "--flow", flow, "--format", "table"}).out, "alice"));
  CHECK(RunAdmin(live, {"params", "--flow", flow, "--limit", "1", "--format", "jsonl"}).out ==
        "{\"param\":\"alice\",\"now_calls\":2,\"tokens\":2,\"level\":3,\"waiters\":0,"
        "\"passed\":null,\"blocked\":null,\"minute_passed\":null,\"minute_blocked\":null}\n");
  CHECK(RunAdmin(live, {"params", "--flow", flow, "--limit", "1001"}).exit_code == 64);
  for (const Source& source : {live, offline}) {
    CHECK(Contains(RunAdmin(source, {"dump", "--format", "jsonl"}).out, "\"param\":\"bob\""));
    CHECK(RunAdmin(source, {"params", "--flow", "1"}).exit_code == 1);
  }
}

// Acquires in the order of `keys`, many in flight, until `answers` have come. How many grants of
// each key were told. Refusals overtake grants, which wait for the disk.
std::map<std::string, int64_t> AcquireKeys(RpcClient* client, const std::vector<size_t>& keys,
                                           size_t answers) {
  constexpr size_t kInFlight = 500;
  std::map<std::string, int64_t> granted;
  std::map<uint64_t, std::string> asked;
  size_t sent = 0;
  for (size_t got = 0; got < answers; ++got) {
    for (; sent < std::min(keys.size(), got + kInFlight); ++sent) {
      const std::string key = "key-" + std::to_string(keys[sent]);
      asked[client->Send("acquire", {kChat, 1, {{"param", key}}})] = key;
    }
    const Reply reply = client->Receive();
    REQUIRE(reply.ok());
    if (reply.result.at(0) == kStatusOk) {
      ++granted[asked.at(reply.msgid)];
    } else {
      REQUIRE(reply.result.at(6) == "param");
      REQUIRE(reply.result.at(3) == reply.result.at(4));
    }
    asked.erase(reply.msgid);
  }
  return granted;
}

TEST_CASE("keys are full exactly at their level, also across kill -9, and take little memory") {
  const size_t key_count = Whole() ? 10'000 : 1'000;  // 200,000 tokens, or 20,000.
  constexpr int64_t kLevel = 20;
  TestServer server(ChatRule(kLevel));
  const uint64_t empty_bytes = ResidentBytes(server.server().process().pid());
  // Each key is asked for more often than its level, in a random order.
  std::vector<size_t> keys;
  for (size_t i = 0; i < key_count * (kLevel + 4); ++i) keys.push_back(i % key_count);
  Prng random(20261126);
  for (size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[random.Below(i)]);

  // The server is killed in the middle.
  RpcClient gateway = server.Connect("gateway");
  const std::map<std::string, int64_t> told = AcquireKeys(&gateway, keys, keys.size() / 2);
  server.server().Restart();
  RpcClient again = server.Connect("gateway");
  std::map<std::string, int64_t> held = NowCallsByKey(&again);
  int64_t beyond = 0;
  for (const auto& [key, count] : told) {
    REQUIRE(held[key] >= count);
    REQUIRE(held[key] <= kLevel);
    beyond += held[key] - count;
  }
  CHECK(beyond <= 500);  // Those on their way.

  // Then all keys become full, and no key more than that.
  AcquireKeys(&again, keys, keys.size());
  held = NowCallsByKey(&again);
  REQUIRE(held.size() == key_count);
  for (const auto& [key, count] : held) REQUIRE(count == kLevel);
  CHECK(NowCalls(&again, kChat) == key_count * kLevel);
  const Json counts = ResultOf(&again, "info").at("counts");
  CHECK(counts.at("keys") == key_count);
  const auto key_bytes = counts.at("key_bytes").get<double>() / static_cast<double>(key_count);
  const auto token_bytes =
      static_cast<double>(ResidentBytes(server.server().process().pid()) - empty_bytes) /
      static_cast<double>(key_count * kLevel);
  MESSAGE("memory of a key: " << key_bytes << " bytes; of the process a token: " << token_bytes);
  CHECK(key_bytes < 250);

  // Nothing of it is lost by another kill, and the files tell the same.
  server.server().Restart();
  RpcClient last = server.Connect("gateway");
  CHECK(NowCallsByKey(&last) == held);
  CHECK(AskForKey(&last, "key-77") == Json({1, "param", kLevel, kLevel}));
  CHECK(RunAdmin(Source::Offline(server.data_dir()), {"verify"}).exit_code == 0);
}

}  // namespace
}  // namespace nowcalls::testing
