// What becomes of tokens when clocks are set, machines are booted anew, and processes are stopped.
//
// The wall clock, the boot clock and the boot id of the real server are those of a Machine
// (support/machine.h). This process has the real boot clock, which the ledger clock must follow.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "integration/calls.h"
#include "integration/readme_client.h"
#include "ledger/fence_line.h"
#include "support/admin.h"
#include "support/machine.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

constexpr int64_t kHourMs = 3'600'000;
constexpr int64_t kTenYearsMs = int64_t{3'652} * 24 * kHourMs;
// As someone sets a wall clock that was right at first.
constexpr int64_t kWallOffsetsMs[] = {kHourMs, -kHourMs, kTenYearsMs, -kTenYearsMs};
constexpr int64_t kDayFlow = 1;
constexpr int64_t kBriefFlow = 2;
constexpr int64_t kMomentFlow = 3;
constexpr int64_t kShortHoldMs = 600;

Json TimeRules() {
  return {RuleJson(kDayFlow, 1'000, {{"resourceTimeout", 24 * kHourMs}}),
          RuleJson(kBriefFlow, 1'000, {{"resourceTimeout", kShortHoldMs / 2}}),
          RuleJson(kMomentFlow, 1'000, {{"resourceTimeout", 1}})};
}

int64_t LedgerMs(RpcClient* client) { return ResultOf(client, "ping").at(0).get<int64_t>(); }

// Proves that the ledger clock goes as fast as the boot clock, between two calls of Check. A
// machine that is booted anew may add something.
class Pace {
 public:
  explicit Pace(RpcClient* client) { Take(client); }

  void Check(RpcClient* client, int64_t least_jump_ms = 0, int64_t most_jump_ms = 0) {
    const Pace before = *this;
    Take(client);
    const int64_t passed_ms = ledger_ms_ - before.ledger_ms_;
    CHECK(passed_ms >= before_to_ms_ - before.after_from_ms_ + least_jump_ms);
    CHECK(passed_ms <= after_from_ms_ - before.before_to_ms_ + most_jump_ms);
  }

 private:
  // The ledger was read between the two; each is a millisecond wider than it looks.
  void Take(RpcClient* client) {
    before_to_ms_ = BoottimeMs() - 1;
    ledger_ms_ = LedgerMs(client);
    after_from_ms_ = BoottimeMs() + 1;
  }

  int64_t before_to_ms_ = 0;
  int64_t ledger_ms_ = 0;
  int64_t after_from_ms_ = 0;
};

// Tokens that end by themselves, each not before its hold is over on the real boot clock.
class ShortTokens {
 public:
  void Take(RpcClient* client) {
    since_ms_ = BoottimeMs();
    REQUIRE(Acquire(client, kBriefFlow).status == kStatusOk);
  }
  void CheckEnd(RpcClient* client) const {
    REQUIRE(PollUntil(kPatienceMs, [&] { return NowCalls(client, kBriefFlow) == 0; }));
    CHECK(BoottimeMs() >= since_ms_ + kShortHoldMs);
  }

 private:
  int64_t since_ms_ = 0;
};

// The sweep has looked around.
void WaitForSweep(RpcClient* client) {
  REQUIRE(Acquire(client, kMomentFlow).status == kStatusOk);
  REQUIRE(PollUntil(kPatienceMs, [&] { return NowCalls(client, kMomentFlow) == 0; }));
}

TEST_CASE("a wall clock that is set under a server ends no token and keeps none") {
  Machine machine;
  TestServer server(TimeRules(), {{}, machine.environment()});
  RpcClient alice = server.Connect("alice");
  Pace pace(&alice);
  std::multiset<uint64_t> held;
  uint64_t last_fence = 0;
  int64_t round = 0;
  for (const int64_t offset_ms : kWallOffsetsMs) {
    CAPTURE(offset_ms);
    ShortTokens short_tokens;
    short_tokens.Take(&alice);
    const Grant grant = Acquire(&alice, kDayFlow);
    CHECK(grant.fence > last_fence);
    last_fence = grant.fence;
    held.insert(grant.token_id);
    machine.control().wall_offset_ms = offset_ms;
    WaitForSweep(&alice);
    short_tokens.CheckEnd(&alice);
    CHECK(Column<uint64_t>(ListAll(&alice, "tokens", Json::array({nullptr})), "token_id") == held);
    pace.Check(&alice);
    // What the server says of the time shows that it was set.
    ++round;
    LoadRules(&alice, RuleJson(100 + round, 1), "round-" + std::to_string(round));
    CHECK(server.server().LogHas(WallText(WallMs() + offset_ms).substr(0, 11)));
  }
  for (const uint64_t token : held) CHECK(Release(&alice, token) == kStatusReleaseOk);
}

TEST_CASE("a wall clock that is set while no server runs ends no token and keeps none") {
  Machine machine;
  TestServer server(TimeRules(), {{"--restart-grace-ms", "100"}, machine.environment()});
  RpcClient alice = server.Connect("alice");
  Pace pace(&alice);
  std::multiset<uint64_t> held;
  uint64_t last_fence = 0;
  for (const int64_t offset_ms : kWallOffsetsMs) {
    CAPTURE(offset_ms);
    const Grant grant = Acquire(&alice, kDayFlow);
    CHECK(grant.fence > last_fence);
    last_fence = grant.fence;
    held.insert(grant.token_id);
    ShortTokens short_tokens;
    short_tokens.Take(&alice);
    server.server().Kill9();
    machine.control().wall_offset_ms = offset_ms;
    server.server().Start();
    alice = server.Connect("alice");
    WaitForSweep(&alice);
    short_tokens.CheckEnd(&alice);
    CHECK(Column<uint64_t>(ListAll(&alice, "tokens", Json::array({nullptr})), "token_id") == held);
    pace.Check(&alice);
  }
  CHECK(server.server().log().find("the machine was started anew") == std::string::npos);
}

TEST_CASE(
    "a boot with any wall clock takes an hour of a token at most, keeps none for ever, and goes on "
    "with higher fences") {
  Machine machine;
  machine.control().boot = 1;
  TestServer server(TimeRules(), {{"--restart-grace-ms", "100"}, machine.environment()});
  RpcClient alice = server.Connect("alice");
  Pace pace(&alice);
  std::multiset<uint64_t> held;
  uint64_t last_fence = 0;
  for (const int64_t step_ms : {int64_t{0}, kHourMs / 2, -kHourMs, kTenYearsMs, -2 * kTenYearsMs}) {
    CAPTURE(step_ms);
    const Grant grant = Acquire(&alice, kDayFlow);
    CHECK(grant.fence > last_fence);
    last_fence = grant.fence;
    held.insert(grant.token_id);
    REQUIRE(Acquire(&alice, kBriefFlow).status == kStatusOk);
    server.server().Kill9();
    const int64_t rebooted_ms = WallMs();
    machine.Reboot(step_ms);
    server.server().Start();
    alice = server.Connect("alice");
    WaitForSweep(&alice);
    // Each is out for its hold, or the grace; the time that is counted for the boot may be either.
    REQUIRE(PollUntil(kPatienceMs, [&] { return NowCalls(&alice, kBriefFlow) == 0; }));
    CHECK(Column<uint64_t>(ListAll(&alice, "tokens", Json::array({nullptr})), "token_id") == held);
    // What is counted instead of the time that really passed since the last mark, which is up to a
    // second older than the kill: the difference of the wall clocks, within an hour; or nothing.
    const int64_t jump_ms = std::clamp<int64_t>(step_ms, 0, kHourMs);
    pace.Check(&alice, jump_ms - kPatienceMs, jump_ms + 1'000);
    const Grant after = Acquire(&alice, kDayFlow);
    // Unless that is beyond the line, on which the ledger began just now.
    const uint64_t skipped = last_fence + ledger::kFencesSkippedByBoot;
    CHECK(after.fence >= (step_ms == 0 ? ledger::FenceLine(rebooted_ms) : skipped));
    last_fence = after.fence;
    CHECK(Release(&alice, after.token_id) == kStatusReleaseOk);
  }
  CHECK(server.server().LogHas("the machine was started anew; "));
  CHECK(server.server().LogHas("the machine was started anew and its wall clock differs by "));
}

TEST_CASE(
    "a wall clock before 1970 ends no server, refuses no ledger and keeps the fences rising") {
  constexpr int64_t kSixtyYearsMs = 6 * kTenYearsMs;
  Machine machine;
  machine.control().wall_offset_ms = -kSixtyYearsMs;
  TestServer server(TimeRules(), {{"--restart-grace-ms", "100"}, machine.environment()});
  RpcClient alice = server.Connect("alice");
  uint64_t last_fence = 0;
  for (const int64_t offset_ms : {-kSixtyYearsMs, int64_t{0}, -kSixtyYearsMs}) {
    CAPTURE(offset_ms);
    machine.control().wall_offset_ms = offset_ms;
    const Grant grant = Acquire(&alice, kDayFlow);
    CHECK(grant.fence > last_fence);
    last_fence = grant.fence;
    server.server().Kill9();
    CHECK(RunAdmin(Source::Offline(server.data_dir()), {"verify"}).exit_code == 0);
    server.server().Start();
    alice = server.Connect("alice");
  }
  CHECK(NowCalls(&alice, kDayFlow) == 3);
  CHECK(server.server().Terminate() == 0);
}

TEST_CASE(
    "a boot clock that is set back moves the ledger clock back never, and refuses no ledger") {
  Machine machine;
  TestServer server({RuleJson(kDayFlow, 1'000,
                              {{"resourceTimeout", 24 * kHourMs}, {"windowIntervalMs", 10'000}})},
                    {{"--restart-grace-ms", "100"}, machine.environment()});
  RpcClient alice = server.Connect("alice");
  const Grant held = Acquire(&alice, kDayFlow);
  int64_t last_ms = LedgerMs(&alice);
  int backups = 0;
  for (const int64_t back_ms : {int64_t{150}, int64_t{2'000}}) {
    for (const bool orderly : {false, true}) {
      CAPTURE(back_ms);
      CAPTURE(orderly);
      // The window has calls of the last moment before the step, and of the first behind it.
      REQUIRE(alice.Call("request", {kDayFlow, 1}).ok());
      machine.control().boot_offset_ms -= back_ms;
      for (int i = 0; i < 10; ++i) {
        const int64_t now_ms = LedgerMs(&alice);
        CHECK(now_ms >= last_ms);
        last_ms = now_ms;
        REQUIRE(alice.Call("request", {kDayFlow, 1}).ok());
      }
      // A ping tells a moment that no crash has to remember; the record of a keep makes it so.
      REQUIRE(alice.Call("keep", {held.token_id}).result.at(0) == kStatusOk);
      const std::string copy = server.Sub("backup" + std::to_string(++backups));
      CHECK(RunAdmin(Source::Live(server.address()), {"backup", "--to", copy}).exit_code == 0);
      if (orderly) CHECK(server.server().Terminate() == 0);
      if (!orderly) server.server().Kill9();
      CHECK(RunAdmin(Source::Offline(server.data_dir()), {"verify"}).exit_code == 0);
      server.server().Start();
      alice = server.Connect("alice");
      CHECK(LedgerMs(&alice) >= last_ms);
      last_ms = LedgerMs(&alice);
    }
  }
  CHECK(server.server().log().find("was set back") == std::string::npos);
  CHECK(Release(&alice, held.token_id) == kStatusReleaseOk);
}

TEST_CASE("a server that was stopped past deadlines ends those tokens when it goes on, no others") {
  TestServer server(TimeRules());
  RpcClient alice = server.Connect("alice");
  Pace pace(&alice);
  const Grant kept = Acquire(&alice, kDayFlow);
  ShortTokens short_tokens;
  short_tokens.Take(&alice);
  server.server().process().Signal(SIGSTOP);
  const int64_t stopped_ms = BoottimeMs();
  REQUIRE(PollUntil(kPatienceMs, [&] { return BoottimeMs() > stopped_ms + 2 * kShortHoldMs; }));
  server.server().process().Signal(SIGCONT);
  short_tokens.CheckEnd(&alice);
  pace.Check(&alice);
  CHECK(NowCalls(&alice, kDayFlow) == 1);
  CHECK(Release(&alice, kept.token_id) == kStatusReleaseOk);
}

TEST_CASE("a message whose end came while the server was stopped has come in time") {
  TestServer server(TimeRules(), {{"--message-incomplete-ms", "500"}, {}});
  RpcClient alice = server.Connect("alice");
  // Longer than some receives.
  Json rules = Json::array();
  for (int i = 0; i < 400; ++i) rules.push_back(RuleJson(2'000 + i, 1));
  const std::string request = EncodeRequest(77, "rules_load", {"shop", RuleSet(rules)});
  REQUIRE(request.size() > 40'000);
  REQUIRE(alice.SendRaw(request.substr(0, 100)));
  // Whoever asks behind it, on another connection, is answered when it has been received.
  RpcClient bob = server.Connect("bob");
  REQUIRE(bob.Call("ping").ok());
  server.server().process().Stop();
  REQUIRE(alice.SendRaw(request.substr(100)));
  const int64_t stopped_ms = BoottimeMs();
  REQUIRE(PollUntil(kPatienceMs, [&] { return BoottimeMs() > stopped_ms + 1'000; }));
  server.server().process().Signal(SIGCONT);
  const Reply reply = alice.Receive();
  CHECK_MESSAGE(reply.ok(), reply.ToString());
  CHECK(reply.msgid == 77);
}

// The README's client under rules of its own, which takes its token and is stopped.
class StoppedClient {
 public:
  explicit StoppedClient(const Json& times, std::vector<std::string> settings = {})
      : server(nullptr, {std::move(settings), {}}), watcher(server.Connect("watcher")) {
    LoadRules(&watcher, RuleJson(1001, 1, times), "shop");
    client_.emplace(server.dir(), server.address());
    REQUIRE(PollUntil(kPatienceMs, [&] { return NowCalls(&watcher, 1001) == 1; }));
    REQUIRE(PollUntil(kPatienceMs, [&] { return Printed("token "); }));
    client_->process().Signal(SIGSTOP);
  }

  // It goes on and gives its token back.
  void GoOn() {
    client_->process().Signal(SIGCONT);
    client_->PressEnter();
    exit_code = client_->process().Wait().value_or(-1000);
  }
  bool Printed(const std::string& text) const {
    return (client_->out() + client_->err()).find(text) != std::string::npos;
  }

  TestServer server;
  RpcClient watcher;
  int exit_code = 0;

 private:
  std::optional<ReadmeClient> client_;
};

TEST_CASE("a client that is stopped past its hold loses its token, and hears of it") {
  StoppedClient client(Json{{"resourceTimeout", 400}});
  REQUIRE(PollUntil(kPatienceMs, [&] { return NowCalls(&client.watcher, 1001) == 0; }));
  // Before the next token, whose hold is as short.
  const auto history = AdminRows(Source::Live(client.server.address()), {"history"});
  const Grant next = Acquire(&client.watcher, 1001);
  CHECK(next.status == kStatusOk);
  REQUIRE(history.size() == 1);
  CHECK(history[0].at("reason") == "resource_timeout");
  CHECK(history[0].at("client_id") == "worker-1");
  CHECK(history[0].at("fence") < next.fence);
  client.GoOn();
  CHECK(client.exit_code == 0);
  CHECK(client.Printed("already gone"));
  CHECK(NowCalls(&client.watcher, 1001) <= 1);  // It took nobody else's.
  CHECK(ResultOf(&client.watcher, "flow", Json::array({1001}))
            .at("counters")
            .at("ended")
            .at("released") == 0);
}

TEST_CASE("a client that is stopped while its server restarts is offline, and loses its token") {
  StoppedClient client(Json{{"clientOfflineTime", 1}}, {"--restart-grace-ms", "300"});
  client.server.server().Restart();
  client.watcher = client.server.Connect("watcher");
  REQUIRE(PollUntil(kPatienceMs, [&] { return NowCalls(&client.watcher, 1001) == 0; }));
  const auto history = AdminRows(Source::Live(client.server.address()), {"history"});
  REQUIRE(history.size() == 1);
  CHECK(history[0].at("reason") == "client_offline");
  const Grant next = Acquire(&client.watcher, 1001);
  CHECK(next.fence > history[0].at("fence"));
  client.GoOn();
  CHECK(client.exit_code != 0);
  CHECK(NowCalls(&client.watcher, 1001) == 1);
  CHECK(Release(&client.watcher, next.token_id) == kStatusReleaseOk);
}

}  // namespace
}  // namespace nowcalls::testing
