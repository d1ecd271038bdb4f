// `nowcalls exec` and signals: what reaches the command, what ends with it, what PID 1 reaps.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "command/exec_runs.h"
#include "support/poll_until.h"

namespace nowcalls::testing {
namespace {

// Children in process groups and sessions of their own, too.
// A dash that has begun to start a command forgets SIGINT, so it waits in small steps.
constexpr char kFamily[] =
    "setsid sleep 300 & sh -c 'sleep 300; true' & (sleep 300 &); echo up; "
    "while :; do sleep 0.02; done";

void Reclaim(const TestServer& server) {
  RpcClient rpc = server.Connect();
  REQUIRE(rpc.Call("reclaim_flow", {7, "a test"}).ok());
}

bool AllIsReleased(const TestServer& server) {
  return PollUntil(kPatienceMs, [&] { return InProgress(server) == 0; });
}

}  // namespace

TEST_CASE("each signal that may end exec reaches its command, whose exit code is passed on") {
  TestServer server(RuleJson(7, 1, {{"clientOfflineTime", 1000}}));
  const TempDir dir;
  const std::vector<int> signals = {SIGHUP,    SIGINT,   SIGQUIT,      SIGABRT, SIGUSR1,
                                    SIGUSR2,   SIGALRM,  SIGSTKFLT,    SIGURG,  SIGXCPU,
                                    SIGVTALRM, SIGPROF,  SIGIO,        SIGPWR,  SIGXFSZ,
                                    SIGWINCH,  SIGRTMIN, SIGRTMIN + 7, SIGRTMAX};
  std::string script = "trap 'exit 33' TERM; ";
  for (const int signal : signals) {
    const std::string number = std::to_string(signal);
    script += "trap 'echo got " + number + ".' " + number + "; ";
  }
  ExecRun run(server.address(), dir, {"--flow", "7"},
              script + "echo up; while :; do sleep 0.02; done");
  REQUIRE(run.IsUp());
  for (const int signal : signals) {
    CAPTURE(signal);
    run.process().Signal(signal);
    CHECK(run.Prints("got " + std::to_string(signal) + ".\n"));
  }
  run.process().Signal(SIGPIPE);
  run.process().Signal(SIGTERM);
  CHECK(run.process().Wait() == 33);
  CHECK(AllIsReleased(server));
}

TEST_CASE("a stderr that nobody reads ends neither exec nor its command") {
  TestServer server(RuleJson(7, 1, {{"clientOfflineTime", 1000}}));
  const TempDir dir;
  std::string line;
  for (const std::string& word :
       ExecArgv(server.address(), {"--flow", "7"},
                {"'trap \"echo usr1\" USR1; echo $PPID up; while [ ! -e " + dir.Sub("go") +
                 " ]; do sleep 0.02; done; exit 33'"})) {
    line += word + (word == "--" ? " /bin/sh -c " : " ");
  }
  Process::Options options;
  // The reader of stderr has gone when the command begins.
  options.argv = {"/bin/sh", "-c",
                  "{ { sleep 0.1; " + line + " >&3; echo code $? >&3; } 2>&1 | true; } 3>&1"};
  options.stdout_path = dir.Sub("out");
  Process shell(options);
  const auto out = [&] { return ReadFileToString(dir.Sub("out")); };
  REQUIRE(PollUntil(kPatienceMs, [&] { return Contains(out(), " up\n"); }));
  Reclaim(server);
  const pid_t guard = std::stoi(out());
  const std::string status = ReadFileToString("/proc/" + std::to_string(guard) + "/status");
  const pid_t exec = std::stoi(status.substr(status.find("PPid:") + 5));
  kill(exec, SIGUSR1);  // exec has seen the loss when it passes this on, or is about to.
  CHECK(PollUntil(kPatienceMs, [&] { return Contains(out(), "usr1\n"); }));
  WriteStringToFile(dir.Sub("go"), "");
  CHECK(shell.Wait() == 0);
  CHECK(Contains(out(), "code 33\n"));
}

TEST_CASE("what is asked to end with a lost token ends whole, with all that it started") {
  TestServer server(RuleJson(7, 1, {{"resourceTimeout", 60'000}, {"clientOfflineTime", 1000}}));
  const TempDir dir;
  for (const std::string how : {"kill", "term"}) {
    CAPTURE(how);
    ExecRun run(server.address(), dir, {"--flow", "7", "--on-lost", how}, kFamily);
    REQUIRE(run.IsUp());
    REQUIRE(PollUntil(kPatienceMs, [&] { return run.Others().size() >= 6; }));
    Reclaim(server);
    CHECK(run.process().Wait() == 124);
    CHECK(run.NothingIsLeft());  // The guard itself may be a moment behind exec.
  }
}

TEST_CASE("a stopped command ends with its lost token, too") {
  TestServer server(RuleJson(7, 1, {{"resourceTimeout", 60'000}, {"clientOfflineTime", 1000}}));
  const TempDir dir;
  for (const std::string how : {"kill", "term"}) {
    CAPTURE(how);
    ExecRun run(server.address(), dir, {"--flow", "7", "--on-lost", how}, kFamily);
    REQUIRE(run.IsUp());
    for (const pid_t pid : run.Others()) {
      if (pid != run.guard()) kill(pid, SIGSTOP);
    }
    Reclaim(server);
    CHECK(run.process().Wait() == 124);
    CHECK(run.NothingIsLeft());
  }
}

TEST_CASE("under --on-lost kill and term nothing of a command outlives exec and its token") {
  TestServer server(RuleJson(7, 1, {{"clientOfflineTime", 1000}}));
  const TempDir dir;
  for (const std::string how : {"kill", "term"}) {
    CAPTURE(how);
    {
      ExecRun ends(server.address(), dir, {"--flow", "7", "--on-lost", how},
                   "sleep 300 & setsid sleep 300 & echo up; exit 33");
      CHECK(ends.process().Wait() == 33);
      CHECK(ends.NothingIsLeft());
      CHECK(InProgress(server) == 0);
    }
    for (const int signal : {SIGTERM, SIGINT, SIGKILL}) {
      CAPTURE(signal);
      ExecRun run(server.address(), dir, {"--flow", "7", "--on-lost", how}, kFamily);
      REQUIRE(run.IsUp());
      run.process().Signal(signal);
      CHECK(run.process().Wait() == (signal == SIGTERM ? 128 + signal : -signal));
      CHECK(run.NothingIsLeft());
      CHECK(AllIsReleased(server));
    }
  }
}

TEST_CASE("a killed exec leaves its command running unless it was asked not to") {
  TestServer server(RuleJson(7, 1, {{"clientOfflineTime", 1000}}));
  const TempDir dir;
  ExecRun run(server.address(), dir, {"--flow", "7"},
              "echo up; while [ ! -e " + dir.Sub("go") + " ]; do sleep 0.02; done; echo done");
  REQUIRE(run.IsUp());
  run.process().Signal(SIGKILL);
  CHECK(run.process().Wait() == -SIGKILL);
  CHECK(AllIsReleased(server));
  WriteStringToFile(dir.Sub("go"), "");
  CHECK(run.Prints("done\n"));
  CHECK(run.NothingIsLeft());
}

TEST_CASE("a guard that is killed takes the command with it, and exec says how it ended") {
  TestServer server(RuleJson(7, 1, {{"clientOfflineTime", 1000}}));
  const TempDir dir;
  for (const std::string how : {"ignore", "kill", "term"}) {
    CAPTURE(how);
    ExecRun run(server.address(), dir, {"--flow", "7", "--on-lost", how}, kFamily);
    REQUIRE(run.IsUp());
    kill(run.guard(), SIGKILL);
    CHECK(run.process().Wait() == 128 + SIGKILL);
    CHECK(run.NothingIsLeft());
    CHECK(AllIsReleased(server));
  }
}

TEST_CASE("signals reach the command alone, or all that it started if asked to") {
  TestServer server(RuleJson(7, 1, {{"clientOfflineTime", 1000}}));
  const TempDir dir;
  const std::string script =
      "sh -c 'trap \"echo child; exit\" USR1; while :; do sleep 0.02; done' & "
      "trap 'echo parent' USR1; trap 'kill $!; exit 33' TERM; sleep 0.1; "
      "echo up; while :; do sleep 0.02; done";
  ExecRun alone(server.address(), dir, {"--flow", "7"}, script);
  REQUIRE(alone.IsUp());
  alone.process().Signal(SIGUSR1);
  CHECK(alone.Prints("parent\n"));
  alone.process().Signal(SIGTERM);
  CHECK(alone.process().Wait() == 33);
  CHECK_FALSE(Contains(alone.out(), "child\n"));
  ExecRun all(server.address(), dir, {"--flow", "7", "--forward-to", "all"}, script);
  REQUIRE(all.IsUp());
  all.process().Signal(SIGUSR1);
  CHECK(all.Prints("parent\n"));
  CHECK(all.Prints("child\n"));
  all.process().Signal(SIGTERM);
  CHECK(all.process().Wait() == 33);
}

TEST_CASE("as PID 1 exec reaps what others leave behind, and passes signals on") {
  if (RunProgram({"/usr/bin/unshare", "-p", "-f", "/bin/true"}).exit_code != 0) {
    MESSAGE("skipped: no PID namespace (root)");
    return;
  }
  TestServer server(RuleJson(7, 1, {{"clientOfflineTime", 1000}}));
  const TempDir dir;
  ExecRun run(server.address(), dir, {"--flow", "7"},
              "trap 'exit 33' TERM; for n in 1 2 3 4 5; do (sleep 0.01 &); done; echo up; "
              "while :; do sleep 0.02; done",
              {"/usr/bin/unshare", "-p", "-f", "--kill-child"});
  REQUIRE(run.IsUp());
  const pid_t exec = ChildrenOf(run.process().pid()).at(0);
  const pid_t guard = ChildrenOf(exec).at(0);
  // Orphans of others than the command become children of PID 1.
  CHECK(RunProgram({"/usr/bin/nsenter", "-t", std::to_string(exec), "-p", "/bin/sh", "-c",
                    "for n in 1 2 3 4 5; do (sleep 0.01 &); done"})
            .exit_code == 0);
  CHECK(PollUntil(kPatienceMs,
                  [&] { return ChildrenOf(exec).size() == 1 && ChildrenOf(guard).size() == 1; }));
  kill(exec, SIGTERM);
  CHECK(run.process().Wait() == 33);
  CHECK(AllIsReleased(server));
}

}  // namespace nowcalls::testing
