// Deadlines: what a token may be held for, and who takes it back.
#include <doctest/doctest.h>

#include <csignal>
#include <vector>

#include "base/clock.h"
#include "integration/calls.h"
#include "support/admin.h"
#include "support/machine.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

TEST_CASE("a token that is not kept is reclaimed, by a client that is online too") {
  TestServer server({RuleJson(1, 10, {{"resourceTimeout", 100}})});
  RpcClient alice = server.Connect("alice");
  const Grant grant = Acquire(&alice, 1, 4);
  CHECK(grant.hold_ms == 200);
  REQUIRE(PollUntil(kPatienceMs, [&] { return NowCalls(&alice, 1) == 0; }));
  CHECK(Release(&alice, grant.token_id) == kStatusAlreadyRelease);
  CHECK(Keep(&alice, grant.token_id) == kStatusAlreadyRelease);
  const Json counters = ResultOf(&alice, "flow", Json::array({1})).at("counters");
  CHECK(counters.at("ended").at("resource_timeout") == 1);
  CHECK(counters.at("ended").at("released") == 0);
}

TEST_CASE("a token is not reclaimed before twice its resource timeout") {
  TestServer server({RuleJson(1, 10, {{"resourceTimeout", 300}})});
  RpcClient alice = server.Connect("alice");
  const auto ping_ms = [&] { return ResultOf(&alice, "ping").at(0).get<int64_t>(); };
  const int64_t before_ms = ping_ms();
  Acquire(&alice, 1);
  REQUIRE(PollUntil(kPatienceMs, [&] { return NowCalls(&alice, 1) == 0; }));
  CHECK(ping_ms() >= before_ms + 600);
  const auto history = AdminRows(Source::Live(server.address()), {"history"});
  REQUIRE(history.size() == 1);
  CHECK(history[0].at("held_ms") >= 600);
}

TEST_CASE("the resource timeout factor can be configured") {
  TestServer server({RuleJson(1, 10)}, {{"--resource-timeout-factor", "2.5"}, {}});
  RpcClient alice = server.Connect("alice");
  CHECK(Acquire(&alice, 1).hold_ms == 150'000);
}

TEST_CASE("a token that is kept outlives its first deadline") {
  Machine machine;  // Each keep must be in time, whatever the disk does.
  machine.control().sync_is_free = 1;
  TestServer server({RuleJson(1, 10, {{"resourceTimeout", 1'000}})}, {{}, machine.environment()});
  RpcClient alice = server.Connect("alice");
  const Grant kept = Acquire(&alice, 1, 2);
  const Grant left = Acquire(&alice, 1, 1);
  int keeps = 0;
  REQUIRE(PollUntil(kPatienceMs, [&] {
    ++keeps;
    REQUIRE(Keep(&alice, kept.token_id) == kStatusOk);
    return NowCalls(&alice, 1) == 2;
  }));
  CHECK(keeps > 1);
  CHECK(Release(&alice, left.token_id) == kStatusAlreadyRelease);
  CHECK(Release(&alice, kept.token_id) == kStatusReleaseOk);
}

TEST_CASE("a token that is kept ends with its rule's maxHoldMs, and its holder is told") {
  TestServer server({RuleJson(1, 10, {{"resourceTimeout", 60'000}, {"maxHoldMs", 700}}),
                     RuleJson(2, 10, {{"resourceTimeout", 60'000}})});
  RpcClient alice = server.Connect();
  ResultOf(&alice, "hello", {1, "default", "alice", {{"lost", true}}});
  const Grant bounded = Acquire(&alice, 1, 2);
  const Grant free = Acquire(&alice, 2, 2);
  CHECK(bounded.hold_ms == 700);
  REQUIRE(PollUntil(kPatienceMs, [&] {
    const Json kept = ResultOf(&alice, "keep", Json::array({bounded.token_id}));
    REQUIRE(kept.at(1) <= 700);
    return kept.at(0) == kStatusAlreadyRelease;
  }));
  CHECK(NowCalls(&alice, 1) == 0);
  CHECK(Keep(&alice, free.token_id) == kStatusOk);
  const std::vector<Json> notices = alice.TakeNotifications();
  REQUIRE(notices.size() == 1);
  CHECK(notices[0].at(1) == "lost");
  CHECK(notices[0].at(2) == Json::array({bounded.token_id, 1, "resource_timeout"}));
  const auto history = AdminRows(Source::Live(server.address()), {"history"});
  REQUIRE(history.size() == 1);
  CHECK(history[0].at("held_ms") >= 700);
}

TEST_CASE("a keep in the listing shows the later deadline") {
  TestServer server({RuleJson(1, 10)});
  RpcClient alice = server.Connect("alice");
  const Grant grant = Acquire(&alice, 1);
  const auto deadline = [&] {
    return ListAll(&alice, "tokens", Json::array({nullptr})).at(0).at("deadline_ms").get<int64_t>();
  };
  const int64_t before_ms = deadline();
  REQUIRE(PollUntil(kPatienceMs, [&] {
    return Keep(&alice, grant.token_id) == kStatusOk && deadline() > before_ms;
  }));
  CHECK(NowCalls(&alice, 1) == 1);
}

TEST_CASE("live tokens in front do not hide an expired one") {
  constexpr size_t kLive = 3'000;
  TestServer server({RuleJson(1, 100'000, {{"resourceTimeout", 4'000}}),
                     RuleJson(2, 10, {{"resourceTimeout", 50}})},
                    {{"--sweep-keys-max", "10"}, {}});
  RpcClient alice = server.Connect("alice");
  AcquireMany(&alice, 1, kLive);
  const Grant grant = Acquire(&alice, 2);
  CHECK(PollUntil(kPatienceMs, [&] { return NowCalls(&alice, 2) == 0; }));
  CHECK(Release(&alice, grant.token_id) == kStatusAlreadyRelease);
}

TEST_CASE("thousands of tokens that expire at once all go, step by step") {
  constexpr size_t kTokens = 5'000;
  TestServer server({RuleJson(1, 100'000, {{"resourceTimeout", 100}}), RuleJson(2, 10)},
                    {{"--sweep-keys-max", "100"}, {}});
  RpcClient alice = server.Connect("alice");
  const Grant other = Acquire(&alice, 2);
  AcquireMany(&alice, 1, kTokens);
  REQUIRE(PollUntil(kPatienceMs, [&] { return NowCalls(&alice, 1) == 0; }));
  const Json counters = ResultOf(&alice, "flow", Json::array({1})).at("counters");
  CHECK(counters.at("ended").at("resource_timeout") == kTokens);
  CHECK(Release(&alice, other.token_id) == kStatusReleaseOk);
}

TEST_CASE("a release after the resource timeout but before the deadline counts as late") {
  TestServer server(
      {RuleJson(1, 10, {{"resourceTimeout", 400}}), RuleJson(2, 10, {{"resourceTimeout", 200}})});
  RpcClient alice = server.Connect("alice");
  const Grant late = Acquire(&alice, 1);
  Acquire(&alice, 2);
  // Flow 2's token ends at 400 ms, when flow 1's is late and has 400 ms left.
  REQUIRE(PollUntil(kPatienceMs, [&] { return NowCalls(&alice, 2) == 0; }));
  const int64_t status = Release(&alice, late.token_id);
  const Json counters = ResultOf(&alice, "flow", Json::array({1})).at("counters");
  if (status == kStatusReleaseOk) {
    CHECK(counters.at("ended").at("released_late") == 1);
    CHECK(counters.at("ended").at("released") == 0);
  } else {
    CHECK(counters.at("ended").at("resource_timeout") ==
          1);  // The machine was too slow to see it late.
  }
}

TEST_CASE(
    "when half of 100 clients are cut off at once their tokens are kept, and the log says so") {
  size_t cut = 0;
  int64_t offline_ms = 0;
  SUBCASE("ten are too few: they are reclaimed on time") {
    cut = 10;
    offline_ms = 300;
  }
  SUBCASE("half are a mass") {
    cut = 50;
    offline_ms = 3'000;  // The last of them must be gone before the first is judged.
  }
  TestServer server(
      RuleJson(1, 1000, {{"resourceTimeout", 60'000}, {"clientOfflineTime", offline_ms}}),
      {{"--mass-expiry-factor", "1000"}, {}});
  std::vector<RpcClient> clients;
  for (int i = 0; i < 100; ++i) {
    clients.push_back(server.Connect("c" + std::to_string(i)));
    Acquire(&clients.back(), 1);
  }
  const auto guarded = [&] {
    const Json info = ResultOf(&clients.back(), "info");
    return info.at("counts").at("mass_sessions").get<int64_t>();
  };
  clients.erase(clients.begin(), clients.begin() + static_cast<ptrdiff_t>(cut));
  if (cut == 10) {
    CHECK(PollUntil(kPatienceMs, [&] { return NowCalls(&clients.back(), 1) == 90; }));
    CHECK(guarded() == 0);
  } else {
    CHECK(PollUntil(kPatienceMs, [&] { return guarded() == 50; }));
    CHECK(NowCalls(&clients.back(), 1) == 100);
    CHECK(server.server().LogHas("mass expiry guard: 50 of 100 sessions with tokens went offline"));
  }
}

TEST_CASE("who was in time before a server was stopped does not suffer for it") {
  Machine machine;  // They must be in time at first, whatever the disk does.
  machine.control().sync_is_free = 1;
  TestServer server({RuleJson(1, 10, {{"clientOfflineTime", 2'000}}),
                     RuleJson(2, 10, {{"resourceTimeout", 1'500}})},
                    {{"--mass-expiry-percent", "0"}, machine.environment()});
  RpcClient keeper = server.Connect("keeper");
  const Grant kept = Acquire(&keeper, 2);
  RpcClient leaver = server.Connect("leaver");
  Acquire(&leaver, 1);
  leaver.Close();
  REQUIRE(PollUntil(kPatienceMs,
                    [&] { return ResultOf(&keeper, "info").at("counts").at("connections") == 1; }));
  server.server().process().Stop();
  const int64_t stopped_ms = BoottimeMs();
  RpcClient back(server.address());
  const uint32_t hello = back.Send("hello", {1, "default", "leaver"});
  const uint32_t keep = keeper.Send("keep", {kept.token_id});
  REQUIRE(PollUntil(kPatienceMs, [&] { return BoottimeMs() > stopped_ms + 3'200; }));
  server.server().process().Signal(SIGCONT);
  const Reply resumed = back.Receive();
  REQUIRE(resumed.msgid == hello);
  CHECK(resumed.result.at(3) == 1);
  const Reply answer = keeper.Receive();
  REQUIRE(answer.msgid == keep);
  CHECK(answer.result.at(0) == kStatusOk);
}

TEST_CASE(
    "more keeps than a connection may have unanswered are in time when they were sent in time") {
  constexpr uint32_t kTokens = 1'100;  // requests_in_flight_max is 1024.
  int64_t sync_ms = 0;
  SUBCASE("on a disk that is quick") {}
  SUBCASE("on a disk that takes longer than the server catches up") { sync_ms = 1'500; }
  Machine machine;  // They must be there when the server is stopped, whatever the disk does.
  machine.control().sync_is_free = 1;
  TestServer server({RuleJson(1, 10'000, {{"resourceTimeout", 1'500}})},
                    {{}, machine.environment()});
  RpcClient keeper = server.Connect("keeper");
  std::vector<uint64_t> tokens;
  for (uint32_t i = 0; i < kTokens; ++i) keeper.Send("acquire", {1, 1});
  for (uint32_t i = 0; i < kTokens; ++i) {
    tokens.push_back(keeper.Receive().result.at(1).get<uint64_t>());
  }
  server.server().process().Stop();
  machine.control().sync_is_free = sync_ms == 0 ? 1 : 0;
  machine.control().sync_takes_ms = sync_ms;
  const int64_t stopped_ms = BoottimeMs();
  for (const uint64_t token : tokens) keeper.Send("keep", {token});
  REQUIRE(PollUntil(kPatienceMs, [&] { return BoottimeMs() > stopped_ms + 3'200; }));
  server.server().process().Signal(SIGCONT);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < kTokens; ++i) {
    if (keeper.Receive().result.at(0) == kStatusOk) ++kept;
  }
  CHECK(kept == kTokens);
}

}  // namespace
}  // namespace nowcalls::testing
