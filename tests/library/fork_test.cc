// The client library in a forked child, which has its parent's client and permits.
#include <doctest/doctest.h>

#include <memory>
#include <utility>

#include "library/clients.h"
#include "support/forked_child.h"
#include "support/poll_until.h"
#include "support/server_process.h"

namespace nowcalls::testing {
TEST_CASE("a forked child that destroys permits and clients leaves the tokens to its parent") {
  TestServer server(RuleJson(7, 2, {{"resourceTimeout", 60'000}, {"clientOfflineTime", 60'000}}));
  RpcClient rpc = server.Connect();
  std::unique_ptr<Client> client = StartClient(server.address(), "parent");
  Acquired acquired = client->Acquire(kFlow);
  Acquired other = client->Acquire(kFlow);
  REQUIRE(acquired.ok());
  REQUIRE(other.ok());
  CHECK(ChildFinds([&] {
    { const Permit dropped = std::move(acquired.permit); }
    client.reset();
    const Released released = other.permit.Release();  // Also of a client that is gone.
    return released.outcome == Outcome::kUnavailable && !released.lost;
  }));
  CHECK(client->Acquire(kFlow).refused_by == RefusedBy::kLevel);
  CHECK(NowCalls(&rpc) == 2);
  CHECK(client->stats().disconnects == 0);
  const Released released = acquired.permit.Release();
  CHECK(released.ok());
  CHECK_FALSE(released.lost);
}

TEST_CASE("in a forked child no call of the parent's client waits or asks") {
  TestServer server(RuleJson(7, 2));
  const auto client = StartClient(server.address(), "parent");
  Acquired acquired = client->Acquire(kFlow);
  REQUIRE(acquired.ok());
  CHECK(ChildFinds([&] {
    bool right = client->Acquire(kFlow).outcome == Outcome::kBadRequest;
    right = right && client->AcquireAll({{kFlow}}).outcome == Outcome::kBadRequest;
    right = right && client->Request(kFlow).outcome == Outcome::kBadRequest;
    right = right && client->RequestParam(kFlow, {"key"}).outcome == Outcome::kBadRequest;
    right = right && client->AcquireFuture(kFlow).get().outcome == Outcome::kBadRequest;
    right = right && client->RequestFuture(kFlow).get().outcome == Outcome::kBadRequest;
    right = right && acquired.permit.Keep().outcome == Outcome::kUnavailable;
    right = right && acquired.permit.Release().outcome == Outcome::kUnavailable;
    right = right && !client->Adopt(TokenId(1), kFlow);
    right = right && !client->stats().connected;
    right = right && !client->WaitConnected(Milliseconds(kPatienceMs)).ok();
    return right && !client->Close(Milliseconds(kPatienceMs)).ok();
  }));
  CHECK(client->Acquire(kFlow).now_calls == 2);
}

TEST_CASE("processes of one client id have sessions of their own, unless they rejoin") {
  TestServer server(RuleJson(7, 2, {{"resourceTimeout", 60'000}, {"clientOfflineTime", 60'000}}));
  ClientOptions options;
  options.addresses = {server.address()};
  options.client_id = "worker";
  options.timeout = Milliseconds(kPatienceMs);
  SUBCASE("each process is an instance") {}
  SUBCASE("who rejoins names none") { options.rejoin = true; }
  const auto client = StartClient(options);
  const Acquired acquired = client->Acquire(kFlow);
  REQUIRE(acquired.ok());
  const TokenId token = acquired.permit.token();
  CHECK(ChildFinds([&] {
    const auto other = StartClient(options);
    auto adopted = std::make_unique<Permit>(other->Adopt(token, kFlow));
    const bool kept = adopted->Keep().ok();
    (void)adopted.release();  // It does not release the token.
    return kept == options.rejoin;
  }));
  CHECK(ChildFinds([&] {
    ClientOptions alone = options;
    alone.exclusive = true;
    const Milliseconds wait(options.rejoin ? kPatienceMs : 200);
    return StartClient(alone)->WaitConnected(wait).ok() == options.rejoin;
  }));
  // All clients of a process are one instance.
  CHECK(StartClient(options)->Adopt(token, kFlow).Keep().ok());
}

TEST_CASE("a forked child may have a client of its own") {
  TestServer server(RuleJson(7, 2));
  const auto client = StartClient(server.address(), "parent");
  const Acquired acquired = client->Acquire(kFlow);
  REQUIRE(acquired.ok());
  CHECK(ChildFinds([&] {
    const auto own = StartClient(server.address(), "child");
    return own->Acquire(kFlow).now_calls == 2;
  }));
  CHECK_FALSE(acquired.permit.lost());
}

}  // namespace nowcalls::testing
