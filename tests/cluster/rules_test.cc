// Rules in a real etcd: of a single server, and of the writer of a cluster.
#include <doctest/doctest.h>
#include <signal.h>

#include <string>
#include <thread>

#include "etcd/client.h"
#include "integration/calls.h"
#include "support/etcd_process.h"
#include "support/members.h"
#include "support/poll_until.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

constexpr char kKey[] = "/nowcalls/rules/shop";

std::string EtcdRules(double level) { return RuleSet({RuleJson(1, level)}).dump(); }

void CommitTo(const EtcdProcess& etcd, const cluster::Operation& operation) {
  etcd::Client client({.endpoints = {etcd.address()}});
  REQUIRE(PollUntil(kPatienceMs, [&] { return client.Commit({.then = {operation}}).ok(); }));
}

std::string RulesArgument(const EtcdProcess& etcd) {
  return "--rules=shop=etcd://" + etcd.address().ToString() + kKey;
}

void AwaitLevelAt(const std::string& address, int64_t level) {
  REQUIRE_MESSAGE(ReachesLevel(address, 1, level), level);
}

struct EtcdRulesFixture {
  EtcdRulesFixture() {
    CommitTo(etcd, cluster::Put(kKey, EtcdRules(10)));
    server.options().arguments = {RulesArgument(etcd)};
    server.Start();
    AwaitLevelAt(server.address(), 10);
  }
  void AwaitLog(const std::string& text) const {
    const bool seen = server.LogHas(text);
    INFO(server.log());
    REQUIRE_MESSAGE(seen, text);
  }

  EtcdProcess etcd;
  TempDir dir;
  ServerProcess server{dir.path()};
};

TEST_CASE_FIXTURE(EtcdRulesFixture, "a key that is put is loaded, bad or gone it changes nothing") {
  CommitTo(etcd, cluster::Put(kKey, EtcdRules(20)));
  AwaitLevelAt(server.address(), 20);
  CommitTo(etcd, cluster::Put(kKey, "[{"));
  AwaitLog("not valid JSON");
  CommitTo(etcd, {.kind = cluster::Operation::Kind::kDelete, .key = kKey});
  AwaitLog("rule source etcd://" + etcd.address().ToString() + kKey +
           ": is not there: etcd has no such key; the rules of before stay in force");
  AwaitLevelAt(server.address(), 20);
  CommitTo(etcd, cluster::Put(kKey, EtcdRules(30)));
  AwaitLevelAt(server.address(), 30);
  CHECK(server.Terminate() == 0);
  AwaitLog("closed in good order");
  CHECK(server.log().find("left unfinished") == std::string::npos);
}

TEST_CASE_FIXTURE(EtcdRulesFixture, "without etcd a server restarts with the rules of the ledger") {
  etcd.Kill();
  AwaitLog("cannot be read: etcd does not answer; the rules of before stay in force");
  server.Restart();
  AwaitLevelAt(server.address(), 10);
  etcd.Start();
  CommitTo(etcd, cluster::Put(kKey, EtcdRules(20)));
  AwaitLevelAt(server.address(), 20);
  // One that hangs holds up no end.
  etcd.Stop();
  CHECK(server.Terminate() == 0);
  etcd.Signal(SIGCONT);
}

TEST_CASE("a first start without etcd ends with 74, and without the key, too") {
  const EtcdProcess etcd;
  const TempDir dir;
  ServerProcess server(dir.path(), {{RulesArgument(etcd)}, {}});
  server.StartWithoutWaiting();
  CHECK(server.process().Wait() == 74);
  CHECK(server.LogHas("is not there: etcd has no such key; and the ledger has no rules"));
}

TEST_CASE("of a cluster the writer alone asks for rules") {
  Members members(2);
  CommitTo(members.etcd(), cluster::Put(kKey, EtcdRules(10)));
  for (size_t i = 0; i < members.count(); ++i) {
    members.member(i).options().arguments.push_back(RulesArgument(members.etcd()));
  }
  members.StartAll();
  AwaitLevelAt(members.address(0), 10);
  CommitTo(members.etcd(), cluster::Put(kKey, EtcdRules(20)));
  AwaitLevelAt(members.address(0), 20);
  CHECK(members.member(1).log().find(kKey) == std::string::npos);
  members.member(0).Kill9();
  CHECK(members.AwaitWriter(0) == 1);
  AwaitLevelAt(members.address(1), 20);
  CommitTo(members.etcd(), cluster::Put(kKey, EtcdRules(30)));
  AwaitLevelAt(members.address(1), 30);
}

TEST_CASE("the end of a wait is asked for by another thread, or before it began") {
  const EtcdProcess etcd;
  etcd::Client client({.endpoints = {etcd.address()}});
  CommitTo(etcd, cluster::Put("k", "1"));
  client.EndWait();
  client.AwaitChange("k", 1'000'000, 10 * kPatienceMs);
  std::thread waits([&] { client.AwaitChange("k", 1'000'000, 10 * kPatienceMs); });
  client.EndWait();
  waits.join();
}

TEST_CASE("a takeover does not wait for a source that the ledger has no rules from") {
  EtcdProcess rules;
  Members members(2);
  members.StartAll();
  {
    RpcClient client(members.address(0));
    LoadRules(&client, {RuleJson(7, 70)});
  }
  ServerProcess& standby = members.member(1);
  CHECK(standby.Terminate() == 0);
  standby.options().arguments.push_back(RulesArgument(rules));  // It has no such key.
  standby.StartWithoutWaiting();
  REQUIRE(standby.LogHas(members.address(1) + " stands by: "));
  members.member(0).Kill9();
  REQUIRE(members.AwaitWriter(/*other=*/0) == 1);
  CHECK(standby.LogHas("is not there: etcd has no such key"));
  CommitTo(rules, cluster::Put(kKey, EtcdRules(20)));
  AwaitLevelAt(members.address(1), 20);
}

}  // namespace
}  // namespace nowcalls::testing
