// Who a client is: hello, reconnects, shared client ids, and levels that depend on who is online.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "integration/calls.h"
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
  TestServer server({RuleJson(1, 10, {{"clientOfflineTime", 2'000}}),
                     RuleJson(2, 10, {{"clientOfflineTime", 1}})});
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
