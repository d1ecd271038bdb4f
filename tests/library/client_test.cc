// The client library against a real server that answers.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "library/clients.h"
#include "nowcalls/flow_name.h"
#include "support/poll_until.h"
#include "support/server_process.h"

namespace nowcalls::testing {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): of tests.

TEST_CASE("a permit holds a token until it is destroyed") {
  TestServer server(RuleJson(7, 2));
  RpcClient rpc = server.Connect();
  const auto client = StartClient(server.address(), "worker");
  {
    const Acquired acquired = client->Acquire(kFlow);
    REQUIRE(acquired.ok());
    CHECK(acquired.permit.token().value > 0);
    CHECK(acquired.permit.fence().value > 0);
    CHECK(acquired.now_calls == 1);
    CHECK(acquired.level == 2);
    CHECK(acquired.permit.grant().hold == 2min);
    CHECK_FALSE(acquired.local);
    CHECK(NowCalls(&rpc) == 1);
  }
  CHECK(PollUntil(kPatienceMs, [&] { return NowCalls(&rpc) == 0; }));
}

TEST_CASE("a flow may be the resource of its rule in every call") {
  TestServer server(Json::array({RuleJson(7, 2), RuleJson(8, 100)}));
  RpcClient rpc = server.Connect();
  const auto client = StartClient(server.address(), "worker");
  const Acquired acquired = client->Acquire(FlowNamed("resource-7"));
  REQUIRE_MESSAGE(acquired.ok(), acquired.message);
  CHECK(NameOfFlow(acquired.permit.grant().flow) == "resource-7");
  CHECK(client->AcquireFuture(FlowNamed("resource-7")).get().ok());
  CHECK(NowCalls(&rpc) >= 1);
  CHECK(client->Request(FlowNamed("resource-8")).ok());
  CHECK(client->Acquire(FlowNamed("resource-9")).outcome == Outcome::kNoRule);
  const AllAcquired twice = client->AcquireAll({{FlowNamed("resource-7")}, {kFlow}});
  CHECK(twice.outcome == Outcome::kBadRequest);
  CHECK(twice.message.find("must not hold flow_id 7") != std::string::npos);
  Permit adopted = client->Adopt(acquired.permit.token(), FlowNamed("resource-7"));
  CHECK(adopted.Keep().ok());
}

TEST_CASE("a grant cannot be cut down to its answer, which would give the token back") {
  CHECK_FALSE(std::is_constructible_v<Answer, Acquired>);
  CHECK_FALSE(std::is_constructible_v<Answer, AllAcquired>);
  CHECK_FALSE(std::is_convertible_v<Acquired, Answer>);
  CHECK_FALSE(std::is_constructible_v<std::function<void(Acquired)>, void (*)(Answer)>);
  CHECK(std::is_constructible_v<Answer, const Acquired&>);  // The grant stays.
  CHECK(std::is_convertible_v<Passed, Answer>);
}

TEST_CASE("a refusal says which limit and what is in progress") {
  TestServer server(RuleJson(7, 1));
  const auto client = StartClient(server.address(), "worker");
  const Acquired first = client->Acquire(kFlow);
  REQUIRE(first.ok());
  const Acquired second = client->Acquire(kFlow);
  CHECK(second.outcome == Outcome::kRefused);
  CHECK(second.refused_by == RefusedBy::kLevel);
  CHECK(second.now_calls == 1);
  CHECK(second.level == 1);
  CHECK(second.message == "flow 7 refused by level: 1 of 1 in progress");
  CHECK_FALSE(second.permit);
  CHECK(client->Acquire(FlowId(8)).outcome == Outcome::kNoRule);
  CHECK(client->Acquire(kFlow, {.count = 0}).outcome == Outcome::kBadRequest);
  CHECK(client->Acquire(kFlow, {.param = "key"}).outcome == Outcome::kBadRequest);
  CHECK(client->Acquire(kFlow, {.wait = 2h}).outcome == Outcome::kBadRequest);
}

TEST_CASE("an acquire waits for room, and a wait that is over is a refusal") {
  TestServer server(RuleJson(7, 1));
  const auto client = StartClient(server.address(), "worker");
  Acquired first = client->Acquire(kFlow);
  REQUIRE(first.ok());
  CHECK(client->Acquire(kFlow, {.wait = 20ms}).refused_by == RefusedBy::kQueueTimeout);
  std::future<Acquired> waits = client->AcquireFuture(kFlow, {.wait = 1min});
  CHECK(waits.wait_for(50ms) == std::future_status::timeout);
  CHECK(first.permit.Release().ok());
  CHECK(waits.get().ok());
}

TEST_CASE("many threads share a client, and the level holds") {
  constexpr int kLevel = 3;
  constexpr int kThreads = 8;
  constexpr int kRounds = 50;
  TestServer server(RuleJson(7, kLevel));
  const auto client = StartClient(server.address(), "worker");
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::atomic<int> granted{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        const Acquired acquired = client->Acquire(kFlow, {.wait = 1min});
        if (!acquired) continue;
        const int now = ++inside;
        int seen = most;
        while (seen < now && !most.compare_exchange_weak(seen, now)) {
        }
        ++granted;
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(granted == kThreads * kRounds);
  CHECK(most <= kLevel);
  CHECK(client->Close(1min).ok());
  RpcClient rpc = server.Connect();
  CHECK(NowCalls(&rpc) == 0);
}

TEST_CASE("calls a second pass, wait or are refused") {
  Json cluster = {{"windowIntervalMs", 60'000}, {"sampleCount", 1}};
  TestServer server(RuleJson(7, 1.0 / 30, cluster));
  const auto client = StartClient(server.address(), "worker");
  const Passed first = client->Request(kFlow);
  CHECK(first.ok());
  CHECK(first.remaining == 1);
  CHECK(client->Request(kFlow).remaining == 0);
  const Passed third = client->Request(kFlow);
  CHECK(third.outcome == Outcome::kRefused);
  CHECK(third.refused_by == RefusedBy::kRate);
  CHECK(client->RequestParam(kFlow, {"key"}).outcome == Outcome::kBadRequest);
  CHECK(client->RequestParam(kFlow, {}).outcome == Outcome::kBadRequest);
}

TEST_CASE("callbacks may ask, but not wait") {
  TestServer server(RuleJson(7, 2));
  const auto client = StartClient(server.address(), "worker");
  std::promise<std::string> said;
  client->AcquireAsync(kFlow, {}, [&](Acquired acquired) {
    CHECK(client->OnOwnThread());
    const Acquired blocked = client->Acquire(kFlow);
    CHECK(blocked.outcome == Outcome::kBadRequest);
    CHECK(client->WaitConnected(1min).code() == StatusCode::kFailedPrecondition);
    CHECK(client->Close(1min).code() == StatusCode::kFailedPrecondition);
    client->AcquireAsync(
        kFlow, {},
        [&, outer = std::make_shared<Acquired>(std::move(acquired))](const Acquired& inner) {
          said.set_value(std::string(OutcomeName(inner.outcome)) + " beside " +
                         std::to_string(outer->now_calls));
        });
  });
  CHECK(said.get_future().get() == "ok beside 1");
}

TEST_CASE("a reclaimed token is told to its permit at once, with the reason") {
  TestServer server(RuleJson(7, 1, {{"resourceTimeout", 60'000}}));
  RpcClient rpc = server.Connect();
  const auto client = StartClient(server.address(), "worker");
  std::promise<std::string> told;
  Acquired acquired = client->Acquire(
      kFlow, {.on_lost = [&](const Grant&, const std::string& reason) { told.set_value(reason); }});
  REQUIRE(acquired.ok());
  CHECK_FALSE(acquired.permit.lost());
  ReclaimToken(&rpc, acquired.permit.token());
  CHECK(told.get_future().get() == "admin");
  CHECK(acquired.permit.lost());
  CHECK(acquired.permit.lost_reason() == "admin");
  const Released released = acquired.permit.Release();
  CHECK(released.ok());
  CHECK(released.lost);
}

TEST_CASE("a permit is kept for longer than its hold if its rule says so, unless it is not to be") {
  TestServer server(RuleJson(
      7, 2,
      {{"resourceTimeout", 300}, {"resourceTimeoutStrategy", 2}, {"clientOfflineTime", 60'000}}));
  const auto client = StartClient(server.address(), "worker");
  const Acquired kept = client->Acquire(kFlow);
  const Acquired left = client->Acquire(kFlow, {.keep = KeepMode::kOff});
  REQUIRE(kept.ok());
  REQUIRE(left.ok());
  CHECK(PollUntil(kPatienceMs, [&] { return left.permit.lost(); }));
  CHECK(left.permit.lost_reason() == "resource_timeout");
  CHECK_FALSE(kept.permit.lost());
  CHECK(client->stats().kept > 0);
}

TEST_CASE("a rule with resourceTimeoutStrategy 1 ends permits at its resourceTimeout") {
  TestServer server(RuleJson(7, 2, {{"resourceTimeout", 500}, {"resourceTimeoutStrategy", 1}}));
  RpcClient rpc = server.Connect();
  const auto client = StartClient(server.address(), "worker");
  const Acquired released = client->Acquire(kFlow);
  const Acquired kept = client->Acquire(kFlow, {.keep = KeepMode::kAlways});
  CHECK(PollUntil(kPatienceMs, [&] { return released.permit.lost(); }));
  CHECK(released.permit.lost_reason() == "resource_timeout");
  CHECK(PollUntil(kPatienceMs, [&] { return NowCalls(&rpc) == 1; }));
  CHECK_FALSE(kept.permit.lost());
  // The server did not take it back: the client has released it, as of a call that took too long.
  const Json history = rpc.Call("history", Json::array()).result.at(0);
  for (const Json& row : history) {
    CHECK_MESSAGE(row.at("outcome") == "timeout", history.dump());
    CHECK_MESSAGE(row.at("reason").get<std::string>().starts_with("released"), history.dump());
  }
}

TEST_CASE("a prioritized acquire is asked again as its rule says") {
  TestServer server(Json::array({RuleJson(7, 1, {{"acquireRefuseStrategy", 2}}),
                                 RuleJson(8, 1, {{"acquireRefuseStrategy", 1}}), RuleJson(9, 1)}));
  const auto client = StartClient(server.address(), "worker");
  std::vector<Acquired> held;
  for (const int64_t flow : {7, 8, 9}) held.push_back(client->Acquire(FlowId(flow)));
  const auto refused = [&](int64_t flow) {
    RpcClient rpc = server.Connect();
    const Json refusals = rpc.Call("flow", {flow}).result.at("counters").at("refused");
    return refusals.contains("level") ? refusals.at("level").get<int>() : 0;
  };
  SUBCASE("until its deadline") {
    std::future<Acquired> waits = client->AcquireFuture(kFlow, {.prioritized = true});
    CHECK(PollUntil(kPatienceMs, [&] { return refused(7) > 2; }));
    CHECK(held[0].permit.Release().ok());
    const Acquired acquired = waits.get();
    CHECK_MESSAGE(acquired.ok(), acquired.message);
  }
  SUBCASE("and refused when it is over") {
    // On a busy machine the answer to the last attempt may come after the deadline.
    Acquired late;
    CHECK(PollUntil(kPatienceMs, [&] {
      late = client->Acquire(kFlow, {.prioritized = true, .timeout = 200ms});
      return late.outcome != Outcome::kUnknown;
    }));
    CHECK_MESSAGE(late.outcome == Outcome::kRefused, late.message);
    CHECK(late.refused_by == RefusedBy::kLevel);
  }
  SUBCASE("once more") {
    CHECK(client->Acquire(FlowId(8), {.prioritized = true}).refused_by == RefusedBy::kLevel);
    CHECK(refused(8) == 2);
  }
  SUBCASE("not at all") {
    CHECK(client->Acquire(FlowId(9), {.prioritized = true}).refused_by == RefusedBy::kLevel);
    CHECK(refused(9) == 1);
  }
  SUBCASE("nor if it is not prioritized") {
    CHECK(client->Acquire(kFlow).refused_by == RefusedBy::kLevel);
    CHECK(refused(7) == 1);
  }
}

TEST_CASE("options that are wrong are named") {
  const auto wrong = [](const ClientOptions& options) {
    return Client::Start(options).status().message();
  };
  CHECK(wrong({.addresses = {}}) == "addresses is empty");
  CHECK(wrong({.addresses = {"nonsense"}}).starts_with("addresses: "));
  CHECK(wrong({.addresses = {"127.0.0.1:0"}}).starts_with("addresses: "));
  CHECK(wrong({.name_space = ""}).starts_with("name_space: "));
  CHECK(wrong({.client_id = "@me"}).starts_with("client_id: "));
  CHECK(wrong({.timeout = 0ms}) == "timeout must be 1 ms to 1 h");
}

TEST_CASE("a closed client answers, and its permits outlive it") {
  TestServer server(RuleJson(7, 2));
  auto client = StartClient(server.address(), "worker");
  Acquired acquired = client->Acquire(kFlow);
  REQUIRE(acquired.ok());
  Acquired second = client->Acquire(kFlow);
  REQUIRE(second.ok());
  CHECK(client->Close(1min).ok());
  CHECK_FALSE(client->stats().connected);
  CHECK(client->stats().why_offline == "the client is closed");
  CHECK(client->WaitConnected(1min).message() == "the client is closed");
  CHECK(PollUntil(kPatienceMs, [&] {  // The other one is the only session that is online.
    return server.Connect().Call("hello", {1, "default", "other"}).result.at(2) == 1;
  }));
  const Acquired late = client->Acquire(kFlow);
  CHECK(late.outcome == Outcome::kBadRequest);
  CHECK(late.message == "the client is closed");
  CHECK(client->AcquireFuture(kFlow).get().outcome == Outcome::kBadRequest);
  CHECK(client->Request(kFlow).outcome == Outcome::kBadRequest);
  std::thread([&] {  // The system may give it the id of the loop's thread.
    CHECK(client->Acquire(kFlow).message == "the client is closed");
  })
      .join();
  CHECK(second.permit.Release().outcome == Outcome::kUnavailable);
  client.reset();
  CHECK(acquired.permit.Release().outcome == Outcome::kUnavailable);
}

}  // namespace nowcalls::testing
