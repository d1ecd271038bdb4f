// Flows by name: rules without flowId keep their numbers over reloads, restarts and kills.
#include <doctest/doctest.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "integration/calls.h"
#include "support/admin.h"
#include "support/poll_until.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

constexpr int64_t kShopCheckout = 7'119'573'550'062'657;  // Of PROTOCOL.md.
constexpr int64_t kDefaultCheckout = 7'808'647'224'493'747;

Json NamedRule(const std::string& resource, double level) {
  Json rule = RuleJson(1, level);
  rule["resource"] = resource;
  rule["clusterConfig"].erase("flowId");
  return rule;
}

// A server whose namespace "shop" is fed by a file.
class NamedRulesFixture {
 public:
  NamedRulesFixture() {
    Write({NamedRule("checkout", 5), NamedRule("search", 5)});
    server.options().arguments = {"--rules", "shop=" + path()};
    server.Start();
  }

  std::string path() const { return dir.Sub("rules.json"); }
  void Write(const Json& rules) const { WriteStringToFile(path(), RuleSet(rules).dump()); }
  Source live() const { return Source::Live(server.address()); }
  RpcClient Client(const std::string& client_id) const {
    RpcClient client(server.address());
    ResultOf(&client, "hello", {1, "shop", client_id});
    return client;
  }

  TempDir dir;
  ServerProcess server{dir.path()};
};

Json AcquireByName(RpcClient* client, const std::string& name, int64_t count = 1) {
  return ResultOf(client, "acquire", {name, count});
}

TEST_CASE_FIXTURE(NamedRulesFixture,
                  "a rule without flowId is the same flow after reloads, SIGHUP and kill -9") {
  RpcClient client = Client("worker");
  const Json granted = AcquireByName(&client, "checkout", 3);
  CHECK(granted.at(0) == kStatusOk);
  CHECK(NowCalls(&client, kShopCheckout) == 3);

  Write({NamedRule("search", 5), NamedRule("checkout", 4), RuleJson(9, 1)});
  REQUIRE(ReachesLevel(server.address(), kShopCheckout, 4));
  CHECK(AcquireByName(&client, "checkout", 2).at(0) == kStatusBlocked);
  server.process().Signal(SIGHUP);
  CHECK(server.LogHas("3 rules, 0 new or changed, 0 removed"));
  CHECK(NowCalls(&client, kShopCheckout) == 3);

  server.Restart();
  RpcClient again = Client("worker");
  CHECK(NowCalls(&again, kShopCheckout) == 3);
  CHECK(AcquireByName(&again, "checkout", 2).at(0) == kStatusBlocked);
  CHECK(ResultOf(&again, "release", Json::array({granted.at(1)})).at(0) == kStatusReleaseOk);
  CHECK(AcquireByName(&again, "checkout", 4).at(0) == kStatusOk);

  // The ledger has the rules without their file, with the same numbers.
  server.options().arguments.clear();
  server.Restart();
  RpcClient without_file = Client("worker");
  CHECK(NowCalls(&without_file, kShopCheckout) == 4);
}

TEST_CASE_FIXTURE(NamedRulesFixture,
                  "rules that were listed can be loaded again, and are the same rules") {
  Json rules = Json::array();
  for (const Json& row : AdminRows(live(), {"rules", "list"})) rules.push_back(row);
  REQUIRE(rules.size() == 2);
  WriteStringToFile(dir.Sub("listed.json"), rules.dump());
  const Finished diff =
      RunAdmin(live(), {"rules", "diff", dir.Sub("listed.json"), "--namespace", "shop"});
  CHECK_MESSAGE(diff.exit_code == 0, diff.out, diff.err);
}

TEST_CASE_FIXTURE(NamedRulesFixture, "the admin tool takes names, live and from disk") {
  RpcClient client = Client("worker");
  AcquireByName(&client, "checkout", 2);
  for (const bool is_live : {true, false}) {
    const Source source = is_live ? live() : Source::Offline(server.data_dir());
    CAPTURE(is_live);
    CHECK(AdminRows(source, {"flow", "checkout"}).at(0).at("flow_id") == kShopCheckout);
    CHECK(AdminRows(source, {"tokens", "--flow", "checkout"}).size() == 1);
    CHECK(AdminRows(source, {"dump", "--flow", "search"}).empty());
    const Finished none = RunAdmin(source, {"flow", "chekout"});
    CHECK(none.exit_code == 1);
    CHECK(Contains(none.err, "flow 'chekout' has neither a rule nor tokens"));
  }
  const std::string number = std::to_string(kShopCheckout);
  const Finished drained = RunAdmin(live(), {"drain", "--flow", "checkout"});
  CHECK(drained.exit_code == 0);
  CHECK(Contains(drained.out, "flow 'checkout' (" + number + ") grants nothing more"));
  const Finished taken =
      RunAdmin(live(), {"reclaim", "--flow", "checkout", "--reason", "a test", "--yes"});
  CHECK_MESSAGE(taken.exit_code == 0, taken.err);
  CHECK(NowCalls(&client, kShopCheckout) == 0);
  CHECK(AdminRows(live(), {"history", "--flow", "checkout"}).size() == 1);
}

TEST_CASE("a name that several rules have is refused with their numbers, live and from disk") {
  TestServer server;
  RpcClient rpc = server.Connect();
  Json seven = RuleJson(7, 1);
  Json eight = RuleJson(8, 1);
  seven["resource"] = eight["resource"] = "checkout";
  ResultOf(&rpc, "rules_load", {"default", Json::array({seven, eight}).dump()});
  const Reply refused = rpc.Call("acquire", {"checkout", 1});
  CHECK(refused.error_message ==
        "acquire: flow_id 'checkout' is the resource of several rules: 7 of namespace default, 8 "
        "of namespace default; ask by number");
  for (const Source& source :
       {Source::Live(server.address()), Source::Offline(server.data_dir())}) {
    const Finished flow = RunAdmin(source, {"flow", "checkout"});
    CHECK(flow.exit_code == 1);
    CHECK(Contains(flow.err, "7 of namespace default, 8 of namespace default; ask by number"));
  }
  // One number and one name's number are told apart in the same way.
  eight["clusterConfig"].erase("flowId");
  ResultOf(&rpc, "rules_load", {"default", Json::array({seven, eight}).dump()});
  CHECK(Contains(rpc.Call("acquire", {"checkout", 1}).error_message,
                 std::to_string(kDefaultCheckout)));
}

TEST_CASE("rules check shows the numbers of names for a namespace") {
  const TempDir dir;
  const std::string path = dir.Sub("rules.json");
  WriteStringToFile(path, Json::array({NamedRule("checkout", 5)}).dump());
  const auto check = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {ProductBinary("nowcalls-admin"), "rules", "check", path};
    words.insert(words.end(), more.begin(), more.end());
    return RunProgram(words);
  };
  CHECK(Contains(check({"--namespace", "shop"}).out, std::to_string(kShopCheckout)));
  const Finished without = check({});
  CHECK(without.exit_code == 0);
  CHECK(Contains(without.out, "FLOW_ID -: clients ask by the resource's name"));
  CHECK_FALSE(Contains(without.out, std::to_string(kShopCheckout)));
}

}  // namespace
}  // namespace nowcalls::testing
