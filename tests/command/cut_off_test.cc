// `nowcalls exec` without a word from its server: until when a token is surely its own, it says by
// its own clock, and what the server hears of its end.
#include <doctest/doctest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "command/exec_runs.h"
#include "support/poll_until.h"
#include "support/proxy.h"

namespace nowcalls::testing {
namespace {

constexpr char kScript[] = "setsid sleep 300 & echo up; while :; do sleep 0.02; done";

// What the server has counted of calls of flow 7 that ended so.
int64_t Ended(const TestServer& server, const char* outcome) {
  RpcClient rpc = server.Connect();
  const Json counters = rpc.Call("flow", {7}).result.at("counters");
  if (!counters.contains("outcomes")) return 0;
  const Json& outcomes = counters.at("outcomes");
  return outcomes.contains(outcome) ? outcomes.at(outcome).get<int64_t>() : 0;
}

}  // namespace

TEST_CASE("a command whose exec is cut off or stopped ends before another call is granted") {
  // A short hold with a long clientOfflineTime, and the other way round.
  for (const bool by_hold : {true, false}) {
    TestServer server(RuleJson(7, 1,
                               {{"resourceTimeout", by_hold ? 1500 : 60'000},
                                {"clientOfflineTime", by_hold ? 60'000 : 3000}}));
    const TempDir dir;
    for (const bool stops : {true, false}) {
      CAPTURE(by_hold);
      CAPTURE(stops);
      Proxy proxy(server.address());
      const std::string on_lost = stops == by_hold ? "kill" : "term";
      ExecRun run(proxy.address(), dir, {"--flow", "7", "--on-lost", on_lost}, kScript);
      REQUIRE(run.IsUp());
      const pid_t guard = run.guard();
      const std::vector<pid_t> others = run.Others();
      RpcClient next = server.Connect("next");
      next.Send("acquire", {7, 1, Json{{"wait_ms", 60'000}}});
      proxy.HoldRequests(true);
      proxy.HoldAnswers(true);
      if (stops) run.process().Signal(SIGSTOP);
      if (!by_hold) {
        // The server counts from the end of the connection, which it has not seen yet.
        CHECK(run.NothingIsLeft());
        proxy.Cut();
      }
      const Reply granted = next.Receive();
      for (const pid_t pid : others) {
        const bool ended = StateOf(pid) == '-' || StateOf(pid) == 'Z';
        if (pid != guard) CHECK_MESSAGE(ended, pid);
      }
      REQUIRE(granted.ok());
      run.process().Signal(SIGCONT);
      CHECK(run.process().Wait() == 124);
      CHECK(run.Others().empty());
      CHECK(next.Call("release", Json::array({granted.result.at(1)})).ok());
    }
  }
}

TEST_CASE("a token that was lost before its command began runs nothing under --on-lost kill") {
  for (const std::string stop_at : {"1", "2"}) {
    CAPTURE(stop_at);
    TestServer server(RuleJson(7, 1, {{"resourceTimeout", 500}, {"clientOfflineTime", 500}}));
    const TempDir dir;
    Environment environment = WithShim("fork_shim");
    environment["NOWCALLS_STOP_AT_FORK"] = stop_at;
    ExecRun run(server.address(), dir, {"--flow", "7", "--on-lost", "kill"}, "echo up", {},
                environment);
    pid_t stopped = run.process().pid();
    if (stop_at == "2") {
      REQUIRE(PollUntil(kPatienceMs, [&] { return !ChildrenOf(run.process().pid()).empty(); }));
      stopped = run.guard();
      REQUIRE(PollUntil(kPatienceMs, [&] { return StateOf(stopped) == 'T'; }));
      run.process().Signal(SIGSTOP);  // It would keep the token.
    }
    REQUIRE(PollUntil(kPatienceMs, [&] { return StateOf(run.process().pid()) == 'T'; }));
    CHECK(PollUntil(kPatienceMs, [&] { return InProgress(server) == 0; }));
    run.process().Signal(SIGCONT);
    kill(stopped, SIGCONT);
    CHECK(run.process().Wait() == 124);
    CHECK(run.out().empty());
  }
}

TEST_CASE("the token of a killed exec ends though another has its client id") {
  TestServer server(RuleJson(7, 2, {{"clientOfflineTime", 1000}}));
  const TempDir dir;
  Sleeper killed(server, dir, {"--flow", "7", "--client-id", "worker", "--on-lost", "kill"});
  Sleeper other(server, dir, {"--flow", "7", "--client-id", "worker", "--on-lost", "kill"});
  CHECK(InProgress(server) == 2);
  killed.process().Signal(SIGKILL);
  CHECK(PollUntil(kPatienceMs, [&] { return InProgress(server) == 1; }));
  CHECK(other.process().Running());
  other.process().Signal(SIGTERM);
  CHECK(other.process().Wait() == 7);
}

TEST_CASE("the server hears how a command ended: well, failed, or ended for a lost token") {
  TestServer server(Json::array({RuleJson(7, 2), RuleJson(8, 1)}));
  const TempDir dir;
  CHECK(RunExec(server, {"--flow", "7"}, {"/bin/true"}).exit_code == 0);
  CHECK(Ended(server, "failed") == 0);
  CHECK(RunExec(server, {"--flow", "7"}, {"/bin/sh", "-c", "exit 33"}).exit_code == 33);
  CHECK(Ended(server, "failed") == 1);
  CHECK(RunExec(server, {"--flow", "7"}, {"/bin/sh", "-c", "kill -9 $$"}).exit_code == 137);
  CHECK(RunExec(server, {"--flow", "7"}, {"/no/such/program"}).exit_code == 127);
  CHECK(Ended(server, "failed") == 3);
  CHECK(Ended(server, "timeout") == 0);
  // Of two tokens one is lost, the other is released.
  ExecRun run(server.address(), dir, {"--flow", "7", "--flow", "8", "--on-lost", "kill"}, kScript);
  REQUIRE(run.IsUp());
  RpcClient rpc = server.Connect();
  REQUIRE(rpc.Call("reclaim_flow", {8, "a test"}).ok());
  CHECK(run.process().Wait() == 124);
  CHECK(Ended(server, "timeout") == 1);
}

}  // namespace nowcalls::testing
