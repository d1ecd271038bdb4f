// One flow id with a rule of the flow and a rule by value, as Sentinel's dashboard numbers them:
// from a file, over both protocols, through a kill, in listings and metrics, and from a ledger of
// an earlier format.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/rules/rule_json.h"
#include "core/tables/token_ids.h"
#include "integration/calls.h"
#include "ledger/commit_batch.h"
#include "store/rocks/rocks_store.h"
#include "support/admin.h"
#include "support/sentinel_client.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

Json OfFlow(int64_t flow, double count) { return RuleJson(flow, count); }

Json ByValue(int64_t flow, double count) {
  Json rule = RuleJson(flow, count);
  rule["paramIdx"] = 0;
  return rule;
}

// The kinds and nowCalls of a listing of flow 1, such as "flow 1 value 2".
std::string KindsOf(const Source& source, const std::vector<std::string>& command) {
  std::string text;
  for (const Json& row : AdminRows(source, command)) {
    if (row.at("flow_id") != 1) continue;
    text += (text.empty() ? "" : " ") + row.at("kind").get<std::string>() + " " +
            row.at("now_calls").dump();
  }
  return text;
}

class TwoKinds {
 public:
  TwoKinds() {
    WriteStringToFile(dir.Sub("rules.json"),
                      RuleSet({OfFlow(1, 2), ByValue(1, 3), OfFlow(2, 1)}).dump());
    server.options().arguments = {"--rules", dir.Sub("rules.json")};
    server.Start();
    client = RpcClient(server.address());
    ResultOf(&client, "hello", {1, "default", "a"});
  }
  Json Ask(const Json& options = Json::object()) {
    return ResultOf(&client, "acquire", {1, 1, options});
  }

  TempDir dir;
  ServerProcess server{dir.path()};
  RpcClient client;
};

TEST_CASE_FIXTURE(TwoKinds, "both rules of a flow id come from one file and survive kill -9") {
  CHECK(Ask().at(0) == kStatusOk);
  CHECK(Ask().at(0) == kStatusOk);
  CHECK(Ask().at(6) == "level");
  for (int i = 0; i < 3; ++i) CHECK(Ask({{"param", "x"}}).at(0) == kStatusOk);
  CHECK(Ask({{"param", "x"}}).at(6) == "param");
  const Source live = Source::Live(server.address());
  CHECK(KindsOf(live, {"stat"}) == "flow 2 value 3");
  CHECK(KindsOf(live, {"flow", "1"}) == "flow 2 value 3");
  CHECK(KindsOf(live, {"flow", "1", "--kind", "value"}) == "value 3");
  CHECK(AdminRows(live, {"tokens", "--flow", "1"}).size() == 5);
  CHECK(AdminRows(live, {"tokens", "--flow", "1", "--kind", "flow"}).size() == 2);
  CHECK(AdminRows(live, {"rules", "list"}).size() == 3);

  server.Kill9();
  const Source offline = Source::Offline(server.data_dir());
  CHECK(KindsOf(offline, {"stat"}) == "flow 2 value 3");
  CHECK(AdminRows(offline, {"dump", "--kind", "value"}).size() == 3);
  const Finished verified = RunAdmin(offline, {"verify"});
  INFO(verified.out);
  CHECK(verified.exit_code == 0);
  CHECK(verified.out.find("5 tokens with nowCalls 5") != std::string::npos);
  CHECK(verified.out.find("3 rules") != std::string::npos);

  server.Start();
  client = RpcClient(server.address());
  ResultOf(&client, "hello", {1, "default", "a"});
  CHECK(Ask().at(6) == "level");
  CHECK(Ask({{"param", "x"}}).at(6) == "param");
  CHECK(KindsOf(Source::Live(server.address()), {"stat"}) == "flow 2 value 3");
}

TEST_CASE_FIXTURE(TwoKinds, "drain, reclaim and purge act on the rule that --kind names, or both") {
  Ask();
  Ask({{"param", "x"}});
  Ask({{"param", "y"}});
  const Source live = Source::Live(server.address());
  CHECK(RunAdmin(live, {"drain", "--flow", "1", "--kind", "value"}).out ==
        "flow 1 by value grants nothing more, 2 tokens with nowCalls 2 out\n");
  CHECK(Ask({{"param", "z"}}).at(6) == "draining");
  CHECK(Ask().at(0) == kStatusOk);
  CHECK(RunAdmin(live, {"drain", "--flow", "1"}).out ==
        "flow 1 grants nothing more, 4 tokens with nowCalls 4 out\n");
  CHECK(
      RunAdmin(live, {"reclaim", "--flow", "1", "--kind", "value", "--reason", "w", "--yes"}).out ==
      "flow 1 by value: 2 tokens taken back\n");
  CHECK(RunAdmin(live, {"reclaim", "--flow", "1", "--reason", "w", "--yes"}).out ==
        "flow 1: 2 tokens taken back\n");
  CHECK(RunAdmin(live, {"history", "--flow", "1", "--kind", "value"}).exit_code == 0);
  CHECK(AdminRows(live, {"history", "--kind", "value"}).size() == 2);
  CHECK(RunAdmin(live, {"purge", "--flow", "1", "--kind", "flow", "--yes"})
            .err.find("has a rule in force") != std::string::npos);
}

TEST_CASE_FIXTURE(TwoKinds, "Sentinel's FLOW and PARAM_FLOW mean each its rule of one flowId") {
  SentinelClient sentinel(server.address());
  sentinel.Ping("default");
  for (int i = 0; i < 2; ++i) CHECK(sentinel.Flow(1).status == kStatusOk);
  CHECK(sentinel.Flow(1).status == kStatusBlocked);
  for (int i = 0; i < 3; ++i) CHECK(sentinel.ParamFlow(1, "x").status == kStatusOk);
  CHECK(sentinel.ParamFlow(1, "x").status == kStatusBlocked);
  CHECK(sentinel.ParamFlow(1, "y").status == kStatusOk);
  CHECK(sentinel.ParamFlow(2, "y").status == kStatusBadRequest);
}

TEST_CASE("a flow id is refused to a second namespace for a rule of the same kind alone") {
  TestServer server(OfFlow(1, 2));
  RpcClient client = server.Connect();
  const auto load = [&](const Json& rules) {
    return client.Call("rules_load", {"other", RuleSet(rules).dump()});
  };
  CHECK(load({OfFlow(1, 2)}).error_name == "CONFLICT");
  CHECK(load({ByValue(1, 2), OfFlow(1, 2)}).error_name == "CONFLICT");
  CHECK(load({ByValue(1, 2)}).ok());
  CHECK(load({ByValue(1, 2), ByValue(1, 2)}).error_name == "BAD_PARAMS");
}

// What a server of format 3 left behind: one rule by value, and beside it tokens of the time when
// the rule was of the flow.
void MakeFormatThree(const std::string& data_dir) {
  store::RocksStoreOptions options;
  const ledger::Format format{.version = 3, .token_id_key = {3, 4}};
  options.format = format;
  auto made = store::RocksStore::Open(data_dir, options);
  REQUIRE(made.ok());
  const core::TokenIds ids(format.token_id_key);
  const int64_t now_ms = WallMs();
  ledger::CommitBatch batch;
  batch.NamespaceSet({"default", "rpc"});
  core::Rule rule = *core::ParseRule(ByValue(1, 3).dump());
  batch.RuleSet({"default", FlowId(1), ledger::RuleState::kActive, core::RuleToJson(rule)});
  batch.SessionOpened({SessionId(1), ledger::SessionKind::kNamed, now_ms, "default", "a"});
  ledger::Seal seal{.batch_number = 1, .next_fence = 10, .ledger_ms = now_ms};
  for (const uint64_t fence : {2, 3}) {
    ledger::Token token;
    token.key = {ledger::Family::kTokensLong, now_ms + 3'600'000, ids.FromFence(Fence(fence))};
    token.flow = FlowId(1);
    token.session = SessionId(1);
    token.count = 1;
    token.issued_ms = now_ms;
    token.fence = Fence(fence);
    if (fence == 3) token.param = ParamValue(ParamType::kString, "x");
    batch.TokenIssued(token);
    ++seal.live_tokens;
    ++seal.live_count_sum;
    seal.live_fence_sum += fence;
  }
  const Result<ClockSample> machine = SampleClocks();
  REQUIRE(machine.ok());
  batch.ClockMarked({now_ms, *machine});
  batch.Sealed(seal);
  REQUIRE((*made)->Commit(batch).ok());
  REQUIRE((*made)->Close().ok());
}

TEST_CASE("a ledger of format 3 whose rule changed its kind while tokens were out goes on") {
  TempDir dir;
  ServerProcess server(dir.path());
  MakeFormatThree(server.data_dir());
  CHECK(RunAdmin(Source::Offline(server.data_dir()), {"verify"}).exit_code == 0);
  CHECK(KindsOf(Source::Offline(server.data_dir()), {"stat"}) == "flow 1 value 1");
  for (int start = 0; start < 2; ++start) {
    CAPTURE(start);
    server.Start();
    CHECK(KindsOf(Source::Live(server.address()), {"stat"}) == "flow 1 value 1");
    RpcClient client(server.address());
    ResultOf(&client, "hello", {1, "default", "a"});
    CHECK(ResultOf(&client, "acquire", {1, 1}).at(0) == kStatusBadRequest);
    CHECK(ResultOf(&client, "flow", {1, "flow"}).at("removed") == true);
    server.Kill9();
    CHECK(RunAdmin(Source::Offline(server.data_dir()), {"verify"}).exit_code == 0);
  }
  server.Start();
  CHECK(RunAdmin(Source::Live(server.address()), {"purge", "--flow", "1", "--yes"}).out ==
        "flow 1: 1 token taken back\n");
  CHECK(KindsOf(Source::Live(server.address()), {"stat"}) == "value 1");
}

}  // namespace
}  // namespace nowcalls::testing
