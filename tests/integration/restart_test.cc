// What survives the end of the server process: everything that was acknowledged.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <string>
#include <vector>

#include "integration/calls.h"
#include "store/rocks/rocks_store.h"
#include "support/admin.h"
#include "support/server_process.h"
#include "support/temp_dir.h"

namespace nowcalls::testing {
namespace {

std::multiset<uint64_t> Ids(const std::vector<uint64_t>& tokens) {
  return {tokens.begin(), tokens.end()};
}

TEST_CASE("after kill -9 tokens, counts, sessions and owners are as before") {
  TestServer server({RuleJson(1, 10), RuleJson(2, 10)});
  RpcClient alice(server.address());
  const Json hello = ResultOf(&alice, "hello", {1, "default", "alice"});
  const Grant one = Acquire(&alice, 1, 4);
  const Grant two = Acquire(&alice, 2, 3);
  const Grant released = Acquire(&alice, 2, 5);
  CHECK(Release(&alice, released.token_id) == kStatusReleaseOk);
  const auto before = ListAll(&alice, "tokens", Json::array({nullptr}));
  server.server().Restart();

  RpcClient again(server.address());
  const Json resumed = ResultOf(&again, "hello", {1, "default", "alice"});
  CHECK(resumed.at(1) == hello.at(1));
  CHECK(resumed.at(3) == 2);
  CHECK(ListAll(&again, "tokens", Json::array({nullptr})) == before);
  CHECK(NowCalls(&again, 1) == 4);
  CHECK(NowCalls(&again, 2) == 3);
  CHECK(Acquire(&again, 1, 7).status == kStatusBlocked);
  CHECK(Release(&again, released.token_id) == kStatusAlreadyRelease);
  RpcClient bob = server.Connect("bob");
  CHECK(Release(&bob, one.token_id) == kStatusAlreadyRelease);
  CHECK(Release(&again, one.token_id) == kStatusReleaseOk);
  CHECK(Release(&again, two.token_id) == kStatusReleaseOk);
}

TEST_CASE("a ledger of the first format is served, and is one of this from then on") {
  const TempDir dir;
  ledger::Format first;
  first.version = 1;
  first.token_id_key = {3, 4};
  store::RocksStoreOptions options;
  options.format = first;
  {
    auto made = store::RocksStore::Open(dir.Sub("data"), options);
    REQUIRE(made.ok());
    REQUIRE((*made)->Close().ok());
  }
  ServerProcess server(dir.path());
  server.Start();
  CHECK(server.LogHas("the ledger has format version 1 and gets 4 now"));
  RpcClient alice(server.address());
  ResultOf(&alice, "rules_load", {"default", Json::array({RuleJson(1, 10)}).dump()});
  ResultOf(&alice, "hello", {1, "default", "alice"});
  Acquire(&alice, 1, 4);
  const size_t logged = server.log().size();
  server.Restart();
  RpcClient again(server.address());
  ResultOf(&again, "hello", {1, "default", "alice"});
  CHECK(NowCalls(&again, 1) == 4);
  CHECK(server.log().substr(logged).find("format version") == std::string::npos);
  CHECK(ResultOf(&again, "info").at("ledger").at("format") == 4);
}

TEST_CASE("a keep before kill -9 still counts after it") {
  TestServer server({RuleJson(1, 10)});
  RpcClient alice = server.Connect("alice");
  const Grant grant = Acquire(&alice, 1);
  const auto deadline = [](RpcClient* client) {
    return ListAll(client, "tokens", Json::array({nullptr})).at(0).at("deadline_ms").get<int64_t>();
  };
  const int64_t issued_deadline_ms = deadline(&alice);
  REQUIRE(PollUntil(kPatienceMs, [&] {
    return Keep(&alice, grant.token_id) == kStatusOk && deadline(&alice) > issued_deadline_ms;
  }));
  const int64_t kept_deadline_ms = deadline(&alice);
  server.server().Restart();
  RpcClient again = server.Connect("alice");
  CHECK(deadline(&again) == kept_deadline_ms);
}

TEST_CASE("fences grow and token ids never repeat, across restarts of either kind") {
  TestServer server({RuleJson(1, 1'000'000)});
  std::set<uint64_t> ids;
  uint64_t last_fence = 0;
  uint64_t last_session = 0;
  for (int round = 0; round < 6; ++round) {
    RpcClient client(server.address());
    const auto session = ResultOf(&client, "hello", {1, "default", nullptr}).at(1).get<uint64_t>();
    CHECK(session > last_session);
    last_session = session;
    for (int i = 0; i < 20; ++i) {
      const Grant grant = Acquire(&client, 1);
      CHECK(grant.fence > last_fence);
      last_fence = grant.fence;
      CHECK(ids.insert(grant.token_id).second);
      if (i % 2 == 0) CHECK(Release(&client, grant.token_id) == kStatusReleaseOk);
    }
    if (round % 2 == 0) {
      server.server().Kill9();
    } else {
      CHECK(server.server().Terminate() == 0);
    }
    server.server().Start();
  }
  CHECK(ids.size() == 120);
}

TEST_CASE("the ledger clock does not go back over a restart") {
  TestServer server({RuleJson(1, 10)});
  RpcClient client = server.Connect("alice");
  Acquire(&client, 1);
  const auto before = ResultOf(&client, "ping").at(0).get<int64_t>();
  server.server().Restart();
  RpcClient again = server.Connect("alice");
  CHECK(ResultOf(&again, "ping").at(0).get<int64_t>() >= before);
}

TEST_CASE("a restart gives offline clients the restart grace, not their offline time") {
  TestServer server({RuleJson(1, 10, {{"clientOfflineTime", 1}})},
                    {{"--restart-grace-ms", "20000"}, {}});
  RpcClient alice = server.Connect("alice");
  RpcClient watcher = server.Connect("watcher");
  const Grant grant = Acquire(&alice, 1, 4);
  // Read from outside, so that the answer is as of the kill.
  server.server().Restart();
  RpcClient early = server.Connect("early");
  const Grant quick = Acquire(&early, 1, 1);
  early.Close();
  RpcClient again_watcher = server.Connect("watcher");
  // A session that was opened after the restart follows its offline time alone.
  REQUIRE(PollUntil(kPatienceMs, [&] { return NowCalls(&again_watcher, 1) == 4; }));
  RpcClient again = server.Connect("alice");
  CHECK(Release(&again, quick.token_id) == kStatusAlreadyRelease);
  CHECK(Release(&again, grant.token_id) == kStatusReleaseOk);
}

TEST_CASE("tokens of a client that does not come back end with the restart grace") {
  TestServer server({RuleJson(1, 10, {{"clientOfflineTime", 1}})},
                    {{"--restart-grace-ms", "100"}, {}});
  RpcClient alice = server.Connect("alice");
  Acquire(&alice, 1, 4);
  server.server().Restart();
  RpcClient watcher = server.Connect("watcher");
  CHECK(PollUntil(kPatienceMs, [&] { return NowCalls(&watcher, 1) == 0; }));
  CHECK(ResultOf(&watcher, "flow", Json::array({1}))
            .at("counters")
            .at("ended")
            .at("client_offline") == 1);
}

TEST_CASE("maxHoldMs counts from the grant across kill -9, and ends the restart grace") {
  TestServer server({RuleJson(1, 10, {{"resourceTimeout", 60'000}, {"maxHoldMs", 1'500}}),
                     RuleJson(2, 10, {{"resourceTimeout", 60'000}, {"maxHoldMs", 600'000}})},
                    {{"--restart-grace-ms", "3600000"}, {}});
  RpcClient alice = server.Connect("alice");
  const Grant bounded = Acquire(&alice, 1, 3);
  const Grant longer = Acquire(&alice, 2, 1);
  server.server().Kill9();
  const auto rows = AdminRows(Source::Offline(server.data_dir()), {"rules", "list"});
  CHECK(rows.at(0).at("clusterConfig").at("maxHoldMs") == 1'500);
  server.server().Start();
  RpcClient again = server.Connect("alice");
  // Whatever it keeps.
  CHECK(PollUntil(kPatienceMs, [&] {
    const Json kept = ResultOf(&again, "keep", Json::array({bounded.token_id}));
    REQUIRE(kept.at(1) <= 1'500);
    return NowCalls(&again, 1) == 0;
  }));
  CHECK(Release(&again, bounded.token_id) == kStatusAlreadyRelease);
  CHECK(Release(&again, longer.token_id) == kStatusReleaseOk);
  const auto history = AdminRows(Source::Live(server.address()), {"history"});
  REQUIRE(history.size() == 1);
  CHECK(history[0].at("reason") == "resource_timeout");
  CHECK(history[0].at("held_ms") >= 1'500);
}

TEST_CASE("an expired token of before the restart can still be kept within the grace") {
  TestServer server(
      {RuleJson(1, 10, {{"resourceTimeout", 5'000}}), RuleJson(2, 10, {{"resourceTimeout", 5}})},
      {{"--restart-grace-ms", "10000"}, {}});
  RpcClient alice = server.Connect("alice");
  const Grant slow = Acquire(&alice, 1);
  server.server().Kill9();
  server.server().Start();
  RpcClient again = server.Connect("alice");
  CHECK(Keep(&again, slow.token_id) == kStatusOk);
  CHECK(Release(&again, slow.token_id) == kStatusReleaseOk);
}

TEST_CASE("a token of a connection without a client id survives kill -9 until its grace ends") {
  TestServer server({RuleJson(1, 10, {{"clientOfflineTime", 1}})},
                    {{"--restart-grace-ms", "1000"}, {}});
  RpcClient client = server.Connect();
  const std::string client_id = "@" + client.local_address();
  const Grant grant = Acquire(&client, 1, 3);
  server.server().Kill9();
  const auto rows = AdminRows(Source::Offline(server.data_dir()), {"dump"});
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].at("token_id") == grant.token_id);
  CHECK(rows[0].at("client_id") == client_id);
  server.server().Start();
  RpcClient watcher = server.Connect("watcher");
  CHECK(PollUntil(kPatienceMs, [&] { return NowCalls(&watcher, 1) == 0; }));
}

TEST_CASE("SIGTERM answers what is in flight and exits 0, and nothing is lost") {
  TestServer server({RuleJson(1, 100'000)});
  RpcClient alice = server.Connect("alice");
  constexpr int kRequests = 800;
  for (int i = 0; i < kRequests; ++i) alice.Send("acquire", {1, 1});
  // One answer proves that the requests are arriving.
  REQUIRE(alice.Receive().ok());
  CHECK(server.server().Terminate() == 0);
  std::set<uint64_t> granted;
  for (Reply reply = alice.Receive(); reply.answered(); reply = alice.Receive()) {
    if (reply.ok()) granted.insert(reply.result.at(1).get<uint64_t>());
  }
  CHECK(RpcClient(server.address()).connected() == false);
  const auto rows = AdminRows(Source::Offline(server.data_dir()), {"dump"});
  const auto kept = Column<uint64_t>(rows, "token_id");
  CHECK(std::includes(kept.begin(), kept.end(), granted.begin(), granted.end()));
  CHECK(RunAdmin(Source::Offline(server.data_dir()), {"verify"}).exit_code == 0);
}

TEST_CASE("SIGTERM comes behind what had arrived before it on a hundred connections") {
  TestServer server({RuleJson(1, 1'000)});
  std::vector<RpcClient> clients;
  for (int i = 0; i < 100; ++i) clients.push_back(server.Connect("client " + std::to_string(i)));
  server.server().process().Stop();
  for (RpcClient& client : clients) client.Send("acquire", {1, 1});
  server.server().process().Signal(SIGTERM);
  server.server().process().Signal(SIGCONT);
  std::set<uint64_t> granted;
  for (RpcClient& client : clients) {
    const Reply reply = client.Receive();
    REQUIRE_MESSAGE(reply.ok(), reply.ToString());
    granted.insert(reply.result.at(1).get<uint64_t>());
  }
  CHECK(server.server().process().Wait() == 0);
  const auto rows = AdminRows(Source::Offline(server.data_dir()), {"dump"});
  const auto kept = Column<uint64_t>(rows, "token_id");
  CHECK(std::set<uint64_t>(kept.begin(), kept.end()) == granted);
}

TEST_CASE("with durability none kill -9 loses nothing either") {
  TestServer server({RuleJson(1, 1'000)}, {{"--durability", "none"}, {}});
  RpcClient alice = server.Connect("alice");
  const auto tokens = AcquireMany(&alice, 1, 500);
  server.server().Kill9();
  const auto rows = AdminRows(Source::Offline(server.data_dir()), {"dump"});
  CHECK(Column<uint64_t>(rows, "token_id") == Ids(tokens));
}

// The promise of the product in one case.
TEST_CASE("10,000 tokens over 3 flows, 4,000 released, kill -9: exactly the 6,000 are left") {
  TestServer server({RuleJson(1, 4'000), RuleJson(2, 3'000), RuleJson(3, 3'000)});
  RpcClient alice = server.Connect("alice");
  std::vector<std::vector<uint64_t>> held = {
      AcquireMany(&alice, 1, 4'000), AcquireMany(&alice, 2, 3'000), AcquireMany(&alice, 3, 3'000)};
  for (auto& tokens : held) {
    const size_t keep = 2'000;
    std::vector<uint64_t> leaving(tokens.begin() + keep, tokens.end());
    tokens.resize(keep);
    for (const uint64_t token : leaving) alice.Send("release", Json::array({token}));
    for (size_t i = 0; i < leaving.size(); ++i) {
      const Reply reply = alice.Receive();
      REQUIRE(reply.ok());
      REQUIRE(reply.result.at(0) == kStatusReleaseOk);
    }
  }
  server.server().Kill9();

  const auto check = [&](const Source& source) {
    const auto rows = AdminRows(source, {"dump"});
    CHECK(rows.size() == 6'000);
    std::vector<uint64_t> expected;
    for (const auto& tokens : held) expected.insert(expected.end(), tokens.begin(), tokens.end());
    CHECK(Column<uint64_t>(rows, "token_id") == Ids(expected));
    const auto stat = AdminRows(source, {"stat"});
    REQUIRE(stat.size() == 3);
    for (const auto& row : stat) {
      CHECK(row.at("now_calls") == 2'000);
      CHECK(row.at("tokens") == 2'000);
    }
  };
  check(Source::Offline(server.data_dir()));
  const Finished verified = RunAdmin(Source::Offline(server.data_dir()), {"verify"});
  CAPTURE(verified.out);
  CHECK(verified.exit_code == 0);

  server.server().Start();
  check(Source::Live(server.address()));
  RpcClient again = server.Connect("alice");
  AcquireMany(&again, 2, 1'000);
  const Grant refused = Acquire(&again, 2);
  CHECK(refused.status == kStatusBlocked);
  CHECK(refused.now_calls == 3'000);
  CHECK(refused.level == 3'000);
  CHECK(Acquire(&again, 1, 2'001).status == kStatusBlocked);
  CHECK(Acquire(&again, 1, 2'000).status == kStatusOk);
  CHECK(Release(&again, held[0][0]) == kStatusReleaseOk);
  CHECK(server.server().Terminate() == 0);
  CHECK(RunAdmin(Source::Offline(server.data_dir()), {"verify"}).exit_code == 0);
}

}  // namespace
}  // namespace nowcalls::testing
