// Who a client is: hello, reconnects, shared client ids, and levels that depend on who is online.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/prng.h"
#include "integration/calls.h"
#include "support/admin.h"
#include "support/machine.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

// The session row of a client id; null when there is none.
Json SessionRow(RpcClient* client, const std::string& client_id) {
  for (const auto& row : ListAll(client, "sessions")) {
    if (row.at("client_id") == client_id) return row;
  }
  return nullptr;
}

bool WaitForConnections(RpcClient* client, const std::string& client_id, int connections) {
  return PollUntil(kPatienceMs, [&] {
    const Json row = SessionRow(client, client_id);
    return !row.is_null() && row.at("connections") == connections;
  });
}

TEST_CASE("a connection without hello may acquire and release in namespace default") {
  TestServer server({RuleJson(1, 10)});
  RpcClient client = server.Connect();
  const Grant grant = Acquire(&client, 1, 2);
  CHECK(grant.status == kStatusOk);
  const auto tokens = ListAll(&client, "tokens", Json::array({nullptr}));
  REQUIRE(tokens.size() == 1);
  CHECK(tokens[0].at("namespace") == "default");
  CHECK(tokens[0].at("client_id") == "@" + client.local_address());
  CHECK(Release(&client, grant.token_id) == kStatusReleaseOk);
}

TEST_CASE("a second hello on a connection is refused, and the first stays") {
  TestServer server({RuleJson(1, 10)});
  RpcClient client = server.Connect("alice");
  CHECK(ErrorOf(&client, "hello", {1, "default", "bob"}).error_code == kErrorHelloState);
  Acquire(&client, 1);
  CHECK(ListAll(&client, "tokens", Json::array({nullptr})).at(0).at("client_id") == "alice");
}

TEST_CASE("hello after the first acquire is refused, and the token stays with the connection") {
  TestServer server({RuleJson(1, 10)});
  RpcClient client = server.Connect();
  const Grant grant = Acquire(&client, 1);
  CHECK(ErrorOf(&client, "hello", {1, "default", "alice"}).error_code == kErrorHelloState);
  CHECK(Release(&client, grant.token_id) == kStatusReleaseOk);
}

TEST_CASE("hello without a client id opens a session that ends with its connection") {
  TestServer server({RuleJson(1, 10, {{"clientOfflineTime", 1}})});
  RpcClient watcher = server.Connect("watcher");
  RpcClient client(server.address());
  const Json hello = ResultOf(&client, "hello", {1, "default", nullptr});
  CHECK(hello.at(2) == 2);
  const std::string client_id = "@" + client.local_address();
  Acquire(&client, 1);
  CHECK(SessionRow(&watcher, client_id).at("kind") == "connection");
  client.Close();
  CHECK(PollUntil(kPatienceMs, [&] { return NowCalls(&watcher, 1) == 0; }));
  CHECK(PollUntil(kPatienceMs, [&] { return SessionRow(&watcher, client_id).is_null(); }));
}

TEST_CASE("a reconnect under the same client id, from a new port, resumes its tokens") {
  TestServer server({RuleJson(1, 10)});
  RpcClient alice(server.address());
  const Json first = ResultOf(&alice, "hello", {1, "default", "alice"});
  const Grant one = Acquire(&alice, 1, 2);
  const Grant two = Acquire(&alice, 1, 3);
  const std::string old_address = alice.local_address();
  alice.Close();
  RpcClient again(server.address());
  CHECK(again.local_address() != old_address);
  const Json second = ResultOf(&again, "hello", {1, "default", "alice"});
  CHECK(second.at(1) == first.at(1));
  CHECK(second.at(3) == 2);
  CHECK(NowCalls(&again, 1) == 5);
  CHECK(Release(&again, one.token_id) == kStatusReleaseOk);
  CHECK(Release(&again, two.token_id) == kStatusReleaseOk);
}

TEST_CASE("two connections may share a client id, which is online while either is open") {
  TestServer server({RuleJson(1, 10, {{"clientOfflineTime", 1}})});
  RpcClient watcher = server.Connect("watcher");
  RpcClient one = server.Connect("alice");
  RpcClient two = server.Connect("alice");
  CHECK(SessionRow(&watcher, "alice").at("connections") == 2);
  const Grant grant = Acquire(&one, 1);
  const Grant kept = Acquire(&one, 1);
  CHECK(Release(&two, grant.token_id) == kStatusReleaseOk);
  one.Close();
  REQUIRE(WaitForConnections(&watcher, "alice", 1));
  CHECK(SessionRow(&watcher, "alice").at("online") == true);
  CHECK(Keep(&two, kept.token_id) == kStatusOk);
  two.Close();
  CHECK(PollUntil(kPatienceMs, [&] { return NowCalls(&watcher, 1) == 0; }));
}

TEST_CASE("a client id that is online from two hosts is shown with their number") {
  TestServer server({RuleJson(1, 10)});
  const Source live = Source::Live(server.address());
  const auto hosts = [&] {
    for (const Json& row : AdminRows(live, {"sessions"})) {
      if (row.at("client_id") == "alice") return row.at("hosts");
    }
    return Json();
  };
  const auto table = [&] { return RunAdmin(live, {"sessions", "--format", "table"}).out; };
  RpcClient one = server.Connect("alice");
  RpcClient also = server.Connect("alice");
  CHECK(hosts() == 1);
  CHECK(table().find("HOSTS") == std::string::npos);
  RpcClient other(server.address(), "127.0.0.2");
  ResultOf(&other, "hello", {1, "default", "alice"});
  CHECK(hosts() == 2);
  CHECK(table().find("HOSTS") != std::string::npos);
  other.Close();
  CHECK(PollUntil(kPatienceMs, [&] { return hosts() == 1; }));
}

Json HelloOfInstance(RpcClient* client, uint64_t instance) {
  return ResultOf(client, "hello", {1, "default", "worker", {{"instance", instance}}});
}

TEST_CASE("two processes with one client id from one address share nothing, and are told apart") {
  TestServer server({RuleJson(1, 10)});
  const Source live = Source::Live(server.address());
  constexpr uint64_t kGreatest = INT64_MAX;
  RpcClient one(server.address());
  RpcClient two(server.address());
  HelloOfInstance(&one, 5);
  CHECK(RunAdmin(live, {"sessions", "--format", "table"}).out.find("INSTANCE") ==
        std::string::npos);
  HelloOfInstance(&two, kGreatest);
  const Grant grant = Acquire(&one, 1);
  Acquire(&two, 1);
  CHECK(Release(&two, grant.token_id) == kStatusAlreadyRelease);
  CHECK(server.server().LogHas("another instance of it is online"));
  const std::string table = RunAdmin(live, {"sessions", "--format", "table"}).out;
  CHECK(table.find("INSTANCE") != std::string::npos);
  CHECK(table.find(std::to_string(kGreatest)) != std::string::npos);
  const auto rows = AdminRows(live, {"tokens", "--client", "worker", "--instance", "5"});
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].at("token_id") == grant.token_id);
  CHECK(rows[0].at("instance") == "5");
  RpcClient third(server.address());
  CHECK(ErrorOf(&third, "hello", {1, "default", "worker", {{"instance", 7}, {"exclusive", true}}})
            .error_name == "CONFLICT");
  const auto reclaimed = RunAdmin(live, {"reclaim", "--client", "worker", "--namespace", "default",
                                         "--instance", "5", "--reason", "hung", "--yes"});
  CHECK(reclaimed.exit_code == 0);
  CHECK(NowCalls(&two, 1) == 1);
  const auto history = AdminRows(live, {"history"});
  REQUIRE(history.size() == 1);
  CHECK(history[0].at("instance") == "5");
}

TEST_CASE("the ghost of a worker ends by its own offline time though the worker is back") {
  TestServer server({RuleJson(1, 1, {{"resourceTimeout", 600'000}, {"clientOfflineTime", 50}})});
  RpcClient watcher = server.Connect("watcher");
  RpcClient ghost(server.address());
  HelloOfInstance(&ghost, 1);
  Acquire(&ghost, 1);
  RpcClient worker(server.address());
  CHECK(HelloOfInstance(&worker, 2).at(3) == 0);
  ghost.Close();
  CHECK(PollUntil(kPatienceMs, [&] { return Acquire(&worker, 1).status == kStatusOk; }));
}

TEST_CASE("an instance has its tokens again after kill -9, and the others theirs") {
  TestServer server({RuleJson(1, 10)});
  RpcClient one(server.address());
  HelloOfInstance(&one, 5);
  const Grant grant = Acquire(&one, 1);
  RpcClient without = server.Connect("worker");
  const Grant other = Acquire(&without, 1, 2);
  server.server().Restart();
  RpcClient stranger(server.address());
  CHECK(HelloOfInstance(&stranger, 6).at(3) == 0);
  CHECK(Release(&stranger, grant.token_id) == kStatusAlreadyRelease);
  RpcClient back(server.address());
  CHECK(HelloOfInstance(&back, 5).at(3) == 1);
  CHECK(Release(&back, other.token_id) == kStatusAlreadyRelease);
  CHECK(Release(&back, grant.token_id) == kStatusReleaseOk);
  RpcClient plain(server.address());
  CHECK(ResultOf(&plain, "hello", {1, "default", "worker"}).at(3) == 1);
}

TEST_CASE("a session is listed with its addresses and the time of its last message") {
  TestServer server({RuleJson(1, 10)});
  RpcClient alice = server.Connect("alice");
  RpcClient watcher = server.Connect("watcher");
  const Json row = SessionRow(&watcher, "alice");
  CHECK(row.at("addresses") == Json::array({alice.local_address()}));
  const auto heard_ms = row.at("last_message_ms").get<int64_t>();
  CHECK(PollUntil(kPatienceMs, [&] {
    ResultOf(&alice, "ping");
    return SessionRow(&watcher, "alice").at("last_message_ms") > heard_ms;
  }));
  const auto table = RunAdmin(Source::Live(server.address()),
                              {"sessions", "--client", "alice", "--format", "table", "--wide"});
  CHECK(table.out.find("ADDRESSES") != std::string::npos);
  CHECK(table.out.find(alice.local_address()) != std::string::npos);
  Acquire(&alice, 1);
  server.server().Restart();
  RpcClient again(server.address());
  const Json cold = SessionRow(&again, "alice");
  CHECK_FALSE(cold.contains("addresses"));
  CHECK_FALSE(cold.contains("last_message_ms"));
}

TEST_CASE("the same client id in another namespace is another client") {
  TestServer server({RuleJson(1, 10)});
  RpcClient alice = server.Connect("alice");
  RpcClient other = server.Connect("alice", "orders");
  const Grant grant = Acquire(&alice, 1);
  CHECK(Release(&other, grant.token_id) == kStatusAlreadyRelease);
  CHECK(Release(&alice, grant.token_id) == kStatusReleaseOk);
}

TEST_CASE("a token cannot be released or kept by another client") {
  TestServer server({RuleJson(1, 10)});
  RpcClient alice = server.Connect("alice");
  RpcClient bob = server.Connect("bob");
  RpcClient nobody = server.Connect();
  const Grant grant = Acquire(&alice, 1, 4);
  for (RpcClient* thief : {&bob, &nobody}) {
    CHECK(Release(thief, grant.token_id) == kStatusAlreadyRelease);
    CHECK(Keep(thief, grant.token_id) == kStatusAlreadyRelease);
  }
  CHECK(NowCalls(&alice, 1) == 4);
  CHECK(Release(&alice, grant.token_id) == kStatusReleaseOk);
}

TEST_CASE("under GLOBAL the level does not depend on who is online") {
  TestServer server({RuleJson(1, 3)});
  RpcClient alice = server.Connect("alice");
  RpcClient bob = server.Connect("bob");
  CHECK(Acquire(&alice, 1, 2).level == 3);
  CHECK(Acquire(&bob, 1, 2).status == kStatusBlocked);
  CHECK(Acquire(&bob, 1, 1).status == kStatusOk);
}

TEST_CASE("under AVG_LOCAL the level follows the sessions of the namespace") {
  TestServer server({RuleJson(1, 3, {{"thresholdType", 0}})});
  RpcClient alice = server.Connect("alice");
  CHECK(Acquire(&alice, 1, 3).level == 3);
  CHECK(Acquire(&alice, 1, 1).status == kStatusBlocked);
  RpcClient elsewhere = server.Connect("carol", "orders");
  CHECK(Acquire(&alice, 1, 1).level == 3);
  RpcClient bob = server.Connect("bob");
  RpcClient bob_again = server.Connect("bob");
  const Grant second = Acquire(&alice, 1, 3);
  CHECK(second.level == 6);
  CHECK(second.status == kStatusOk);

  // Bob leaves: the level falls below nowCalls; nothing is taken back, nothing more is granted.
  bob.Close();
  bob_again.Close();
  CHECK(PollUntil(kPatienceMs,
                  [&] { return ResultOf(&alice, "flow", Json::array({1})).at("level") == 3; }));
  CHECK(NowCalls(&alice, 1) == 6);
  CHECK(Acquire(&alice, 1, 1).status == kStatusBlocked);
  CHECK(Release(&alice, second.token_id) == kStatusReleaseOk);
  CHECK(Acquire(&alice, 1, 1).status == kStatusBlocked);
}

// Clients of one namespace that come and go at random, with tokens in their hands or without.
class Flapping {
 public:
  Flapping()
      : server_({RuleJson(1, 2,
                          {{"thresholdType", 0},
                           {"resourceTimeout", 600'000},
                           {"clientOfflineTime", 600'000}})}) {}

  void Step() {
    const size_t index = prng_.Below(clients_.size());
    std::unique_ptr<RpcClient>& client = clients_[index];
    if (client == nullptr) {
      client = std::make_unique<RpcClient>(server_.Connect("client-" + std::to_string(index)));
    } else if (prng_.Below(4) == 0) {
      client.reset();
    } else if (prng_.Below(3) == 0 && !held_[index].empty()) {
      REQUIRE(Release(client.get(), held_[index].back()) == kStatusReleaseOk);
      held_[index].pop_back();
    } else {
      Ask(client.get(), index);
    }
    AwaitOnline();
  }

  void Ask(RpcClient* client, size_t index) {
    const int64_t out = Out();
    const int64_t level = 2 * Online();
    const Grant grant = Acquire(client, 1);
    REQUIRE(grant.level == level);
    REQUIRE(grant.status == (out < level ? kStatusOk : kStatusBlocked));
    REQUIRE(grant.now_calls == (out < level ? out + 1 : out));
    if (out >= level) {
      ++(out > level ? refused_above_ : refused_at_);
      return;
    }
    held_[index].push_back(grant.token_id);
  }

  int refused_at() const { return refused_at_; }
  int refused_above() const { return refused_above_; }

 private:
  int64_t Online() const {
    return std::count_if(clients_.begin(), clients_.end(),
                         [](const auto& client) { return client != nullptr; });
  }
  int64_t Out() const {
    int64_t sum = 0;
    for (const auto& tokens : held_) sum += static_cast<int64_t>(tokens.size());
    return sum;
  }
  // The server hears of a close in its own time.
  void AwaitOnline() {
    REQUIRE(PollUntil(kPatienceMs, [&] {
      return ResultOf(&watcher_, "flow", Json::array({1})).at("sessions") == Online();
    }));
    REQUIRE(NowCalls(&watcher_, 1) == Out());
  }

  Prng prng_{7};
  TestServer server_;
  RpcClient watcher_ = server_.Connect("watcher", "elsewhere");
  std::array<std::unique_ptr<RpcClient>, 8> clients_;
  std::array<std::vector<uint64_t>, 8> held_;
  int refused_at_ = 0;
  int refused_above_ = 0;
};

TEST_CASE(
    "under AVG_LOCAL sessions that flap move the level, and each grant fits the one it meets") {
  Flapping flapping;
  for (int step = 0; step < 1500; ++step) {
    CAPTURE(step);
    flapping.Step();
  }
  // Refused also while the level was below what is out.
  CHECK(flapping.refused_at() > 10);
  CHECK(flapping.refused_above() > 10);
}

TEST_CASE("an offline client loses its tokens after clientOfflineTime, others keep theirs") {
  TestServer server({RuleJson(1, 10, {{"clientOfflineTime", 50}}), RuleJson(2, 10)});
  RpcClient watcher = server.Connect("watcher");
  RpcClient alice = server.Connect("alice");
  Acquire(&alice, 1, 3);
  Acquire(&alice, 2, 1);
  Acquire(&watcher, 1, 2);
  alice.Close();
  CHECK(PollUntil(kPatienceMs, [&] { return NowCalls(&watcher, 1) == 2; }));
  CHECK(NowCalls(&watcher, 2) == 1);
  const Json counters = ResultOf(&watcher, "flow", Json::array({1})).at("counters");
  CHECK(counters.at("ended").at("client_offline") == 1);
  // The session lives on with what it still holds.
  RpcClient again(server.address());
  CHECK(ResultOf(&again, "hello", {1, "default", "alice"}).at(3) == 1);
}

TEST_CASE("a client that comes back within clientOfflineTime keeps its tokens") {
  Machine machine;  // A disk that stalls would keep Alice away for too long.
  machine.control().sync_is_free = 1;
  TestServer server({RuleJson(1, 10, {{"clientOfflineTime", 2'000}}),
                     RuleJson(2, 10, {{"clientOfflineTime", 1}})},
                    {{}, machine.environment()});
  RpcClient watcher = server.Connect("watcher");
  RpcClient alice = server.Connect("alice");
  const Grant grant = Acquire(&alice, 1, 3);
  Acquire(&alice, 2);
  alice.Close();
  // That flow 2 lost its token proves that the server saw the client go.
  REQUIRE(PollUntil(kPatienceMs, [&] { return NowCalls(&watcher, 2) == 0; }));
  RpcClient again = server.Connect("alice");
  // Bob goes later and for longer than Alice's time would have lasted.
  RpcClient bob = server.Connect("bob");
  Acquire(&bob, 1);
  bob.Close();
  REQUIRE(PollUntil(kPatienceMs, [&] { return NowCalls(&watcher, 1) == 3; }));
  CHECK(Keep(&again, grant.token_id) == kStatusOk);
  CHECK(Release(&again, grant.token_id) == kStatusReleaseOk);
}

TEST_CASE("a granted acquire whose client gave up is reclaimed when the client is gone") {
  TestServer server({RuleJson(1, 10, {{"clientOfflineTime", 50}})});
  RpcClient watcher = server.Connect("watcher");
  RpcClient hasty = server.Connect("hasty");
  hasty.Send("acquire", {1, 4});
  hasty.Close();
  CHECK(PollUntil(kPatienceMs, [&] {
    const Json counters = ResultOf(&watcher, "flow", Json::array({1})).at("counters");
    // A reset connection may have swallowed the request; then there is nothing to reclaim.
    return counters.at("granted") == counters.at("ended").at("client_offline") &&
           NowCalls(&watcher, 1) == 0 && SessionRow(&watcher, "hasty").is_null();
  }));
}

}  // namespace
}  // namespace nowcalls::testing
