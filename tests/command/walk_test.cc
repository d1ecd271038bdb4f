// A walk through the life of `nowcalls exec`: at each step it is ended, killed or stopped. Whatever
// happens, no token is left when all is over, and under --on-lost kill no process.
#include <doctest/doctest.h>
#include <signal.h>

#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "command/exec_runs.h"
#include "support/poll_until.h"
#include "support/proxy.h"
#include "support/sample.h"

namespace nowcalls::testing {
namespace {

enum class Step {
  kConnecting,     // The server's answer to hello is on its way.
  kWaiting,        // For room.
  kGranted,        // The grant is on its way.
  kBeforeFork,     // exec has the grant.
  kBeforeCommand,  // The guard is there, the command is not.
  kRunning,
  kReleasing,  // The command has ended, the release is on its way.
};

constexpr Step kSteps[] = {Step::kConnecting,    Step::kWaiting, Step::kGranted,  Step::kBeforeFork,
                           Step::kBeforeCommand, Step::kRunning, Step::kReleasing};

enum class Deed { kTerm, kInt, kKill, kStop, kStopForLong, kStopCommand };

constexpr Deed kDeeds[] = {Deed::kTerm, Deed::kInt,         Deed::kKill,
                           Deed::kStop, Deed::kStopForLong, Deed::kStopCommand};

// An exec that is brought to a step of its life.
class Life {
 public:
  Life(Step step, const TempDir& dir)
      : server_(RuleJson(7, 1, {{"resourceTimeout", 2000}, {"clientOfflineTime", 1000}})),
        proxy_(server_.address()),
        go_(dir.Sub("go")) {
    Environment environment;
    if (step == Step::kBeforeFork || step == Step::kBeforeCommand) {
      environment = WithShim("fork_shim");
      environment["NOWCALLS_STOP_AT_FORK"] = step == Step::kBeforeFork ? "1" : "2";
    }
    RpcClient gate = server_.Connect("gate");
    const bool waits = step == Step::kWaiting || step == Step::kGranted;
    Reply room;
    if (waits) REQUIRE((room = gate.Call("acquire", {7, 1})).ok());
    proxy_.HoldAnswers(step == Step::kConnecting);
    run_.emplace(
        proxy_.address(), dir,
        std::vector<std::string>{"--flow", "7", "--wait", "1h", "--on-lost", "kill"},
        "(setsid sleep 300 &); sleep 300 & echo up; until [ -e " + go_ + " ]; do sleep 0.02; done",
        std::vector<std::string>{}, environment);
    // Before it is exec a signal would meet the test's own handlers.
    REQUIRE(PollUntil(kPatienceMs, [&] { return proxy_.connections() > 0; }));
    if (waits) REQUIRE(PollUntil(kPatienceMs, [&] { return Waiters() == 1; }));
    if (step == Step::kGranted) {
      proxy_.HoldAnswers(true);
      REQUIRE(gate.Call("release", Json::array({room.result.at(1)})).ok());
      REQUIRE(PollUntil(kPatienceMs, [&] { return InProgress(server_) == 1; }));
    }
    if (step == Step::kBeforeFork) REQUIRE(Stands(exec()));
    if (step == Step::kBeforeCommand) {
      REQUIRE(PollUntil(kPatienceMs, [&] { return !ChildrenOf(exec()).empty(); }));
      REQUIRE(Stands(run_->guard()));
    }
    if (step >= Step::kRunning) REQUIRE(run_->IsUp());
    if (step == Step::kReleasing) {
      proxy_.HoldRequests(true);
      WriteStringToFile(go_, "");
      REQUIRE(PollUntil(kPatienceMs, [&] { return run_->Others().empty(); }));
    }
  }

  void Do(Deed deed) {
    switch (deed) {
      case Deed::kTerm: return run_->process().Signal(SIGTERM);
      case Deed::kInt: return run_->process().Signal(SIGINT);
      case Deed::kKill: return run_->process().Signal(SIGKILL);
      case Deed::kStop: return run_->process().Signal(SIGSTOP);
      case Deed::kStopForLong:
        run_->process().Signal(SIGSTOP);
        // Longer than any token of it lives.
        CHECK(PollUntil(kPatienceMs, [&] { return NothingIsHeld(); }));
        return;
      case Deed::kStopCommand:
        for (const pid_t pid : run_->Others()) kill(pid, SIGSTOP);
        return;
    }
  }

  // All that was held up goes on, and what then still lives is asked to end.
  void GoOn() {
    for (const pid_t pid : run_->Others()) kill(pid, SIGCONT);
    run_->process().Signal(SIGCONT);
    proxy_.HoldAnswers(false);
    proxy_.HoldRequests(false);
    run_->process().Signal(SIGTERM);
    run_->process().Signal(SIGCONT);
    CHECK(run_->process().Wait());
    CHECK(run_->NothingIsLeft());
    CHECK(PollUntil(kPatienceMs, [&] { return NothingIsHeld(); }));
  }

 private:
  pid_t exec() { return run_->process().pid(); }
  static bool Stands(pid_t pid) {
    return PollUntil(kPatienceMs, [&] { return StateOf(pid) == 'T'; });
  }
  int64_t Waiters() {
    RpcClient rpc = server_.Connect();
    return rpc.Call("flow", {7}).result.at("waiters").get<int64_t>();
  }
  // By exec; while it waits the gate holds the room.
  bool NothingIsHeld() { return InProgress(server_) == 0 && Waiters() == 0; }

  TestServer server_;
  Proxy proxy_;
  const std::string go_;
  std::optional<ExecRun> run_;
};

}  // namespace

TEST_CASE("no signal at any step of exec's life leaves a token or a process behind") {
  for (const uint64_t number : SampleOf(std::size(kSteps) * std::size(kDeeds), 14)) {
    const size_t step = number / std::size(kDeeds);
    const size_t deed = number % std::size(kDeeds);
    CAPTURE(step);
    CAPTURE(deed);
    const TempDir dir;
    Life life(kSteps[step], dir);
    life.Do(kDeeds[deed]);
    life.GoOn();
  }
}

}  // namespace nowcalls::testing
