// `nowcalls exec`: a command that runs while it holds a token.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "command/exec_runs.h"
#include "support/poll_until.h"
#include "support/process.h"
#include "support/sample.h"
#include "support/server_process.h"
#include "support/temp_dir.h"

namespace nowcalls::testing {
namespace {

// Each run counts itself in and out of a file under a lock, and notes how many are inside.
std::string CounterScript(const TempDir& dir) {
  const std::string counter = dir.Sub("counter");
  WriteStringToFile(counter, "0\n");
  const auto change = [&](const char* by) {
    return "flock " + counter + ".lock sh -c 'n=$(($(cat " + counter + ")" + by + ")); echo $n > " +
           counter + "; echo $n >> " + dir.Sub("inside") + "'";
  };
  return change("+1") + "; sleep 0.01; " + change("-1");
}

// What a crowd of the script left behind.
void CheckCrowd(const TempDir& dir, int runs, int level) {
  std::ifstream file(dir.Sub("inside"));
  int most = 0;
  int lines = 0;
  for (int inside = 0; file >> inside; ++lines) most = std::max(most, inside);
  CHECK(lines == 2 * runs);
  CHECK(most <= level);
  CHECK(most > 1);
  CHECK(ReadFileToString(dir.Sub("counter")) == "0\n");
}

// An exec that reaches no server within 2 s of its command's end says so, and leaves its token.
int64_t UnansweredReleases(const TempDir& dir) {
  std::ifstream file(dir.Sub("crowd.err"));
  int64_t count = 0;
  for (std::string line; std::getline(file, line);) count += Contains(line, "have no answer");
  return count;
}

// Starts the script `runs` times. It returns when all of them wait for room, and then makes room.
Process StartCrowd(const TestServer& server, const TempDir& dir, int runs) {
  const std::string one = ProductBinary("nowcalls") + " exec --server " + server.address() +
                          " --flow 7 --wait 30m --timeout 5m -- sh " + dir.Sub("script");
  WriteStringToFile(dir.Sub("script"), CounterScript(dir));
  Process::Options process;
  process.argv = {"/bin/sh", "-c",
                  "seq " + std::to_string(runs) + " | xargs -P " + std::to_string(runs) +
                      " -I{} sh -c '" + one + " || echo failed'"};
  process.stdout_path = dir.Sub("crowd.out");
  process.stderr_path = dir.Sub("crowd.err");
  RpcClient gate = server.Connect("gate");
  const Reply all_room = gate.Call("acquire", {7, 7});
  REQUIRE(all_room.ok());
  Process crowd(process);
  REQUIRE(PollUntil(20 * kPatienceMs, [&] {
    return gate.Call("flow", {7}).result.at("waiters").get<int64_t>() == runs;
  }));
  REQUIRE(gate.Call("release", Json::array({all_room.result.at(1)})).ok());
  return crowd;
}

}  // namespace

TEST_CASE("the command runs with its token in its environment, and its exit code is passed on") {
  TestServer server(RuleJson(7, 2));
  const Finished done = RunExec(server, {"--flow", "7:2"},
                                {"/bin/sh", "-c",
                                 "echo $NOWCALLS_FLOW_ID; test $NOWCALLS_TOKEN_ID -gt 0; "
                                 "test $NOWCALLS_FENCE -gt 0 || exit 9; exit 33"});
  CHECK(done.exit_code == 33);
  CHECK(done.out == "7\n");
  CHECK(done.err.empty());
  CHECK(InProgress(server) == 0);
}

TEST_CASE("the command finds server and namespace, and a namespace that is named comes first") {
  TestServer server(RuleJson(7, 2));
  const std::vector<std::string> print = {"/bin/sh", "-c",
                                          "echo $NOWCALLS_SERVER $NOWCALLS_NAMESPACE"};
  CHECK(RunExec(server, {"--flow", "7"}, print).out == server.address() + " default\n");
  const std::vector<std::string> argv =
      ExecArgv(server.address(), {"--flow", "7", "--namespace", "default"}, print);
  CHECK(RunProgram(argv, {{"NOWCALLS_NAMESPACE", "other"}}).out == server.address() + " default\n");
}

TEST_CASE("several flows are taken together") {
  TestServer server(Json::array({RuleJson(7, 1), RuleJson(8, 1)}));
  const Finished done =
      RunExec(server, {"--flow", "7", "--flow", "8"}, {"/bin/sh", "-c", "echo $NOWCALLS_FLOW_ID"});
  CHECK(done.exit_code == 0);
  CHECK(done.out == "7,8\n");
}

TEST_CASE("a flow may be named by the resource of its rule, with or without a count") {
  TestServer server(Json::array({RuleJson(7, 2), RuleJson(8, 1)}));
  const std::vector<std::string> print = {"/bin/sh", "-c", "echo $NOWCALLS_FLOW_ID"};
  const Finished done = RunExec(server, {"--flow", "resource-7:2", "--flow", "resource-8"}, print);
  CHECK_MESSAGE(done.exit_code == 0, done.err);
  CHECK(done.out == "resource-7,resource-8\n");
  const Finished full = RunExec(server, {"--flow", "resource-8:2"}, print);
  CHECK(full.exit_code == 120);
  CHECK(Contains(full.err, "flow 'resource-8' refused by over_level"));
  CHECK(RunExec(server, {"--flow", "resource-9"}, print).exit_code == 123);
  // The server sees that both are one flow; the tool alone cannot.
  const Finished twice = RunExec(server, {"--flow", "resource-7", "--flow", "7"}, print);
  CHECK(Contains(twice.err, "must not hold flow_id 7"));
  const Finished same = RunExec(server, {"--flow", "a", "--flow", "a:2"}, print);
  CHECK(same.exit_code == 64);
  CHECK(Contains(same.err, "a is given twice; write a:COUNT"));
  CHECK(RunExec(server, {"--flow", "7:x"}, print).exit_code == 64);
}

TEST_CASE("a resource with colons is asked for with a count behind it, or none that is a number") {
  Json rule = RuleJson(7, 3);
  rule["resource"] = "GET:/a:2";
  TestServer server(rule);
  const std::vector<std::string> print = {"/bin/sh", "-c", "echo $NOWCALLS_FLOW_ID"};
  CHECK(RunExec(server, {"--flow", "GET:/a:2:3"}, print).out == "GET:/a:2\n");
  CHECK(RunExec(server, {"--flow", "GET:/a:2"}, print).exit_code == 123);  // Two calls of GET:/a.
}

TEST_CASE("a flow's own count stays, and --count is of the others") {
  TestServer server(Json::array({RuleJson(7, 1), RuleJson(8, 5)}));
  const std::vector<std::string> command = {"/bin/echo", "ran"};
  CHECK(RunExec(server, {"--flow", "7:1", "--flow", "8", "--count", "5"}, command).out == "ran\n");
  const Finished refused =
      RunExec(server, {"--flow", "7:1", "--flow", "8", "--count", "6"}, command);
  CHECK(refused.exit_code == 120);
  CHECK(Contains(refused.err, "flow 8 refused by over_level"));
}

TEST_CASE("a command that does not begin with a dash needs no -- before it") {
  TestServer server(RuleJson(7, 1));
  const Finished done = RunProgram({ProductBinary("nowcalls"), "exec", "--server", server.address(),
                                    "--flow", "7", "/bin/echo", "--flow", "-x", "7"});
  CHECK_MESSAGE(done.exit_code == 0, done.err);
  CHECK(done.out == "--flow -x 7\n");
}

TEST_CASE("what keeps the command from running has exit codes of its own") {
  TestServer server(RuleJson(7, 1));
  const TempDir dir;
  const std::vector<std::string> command = {"/bin/echo", "ran"};
  CHECK(RunExec(server, {"--flow", "9"}, command).exit_code == 123);
  CHECK(RunExec(server, {"--flow", "9", "--if-no-rule", "run"}, command).out == "ran\n");
  CHECK(RunExec(server, {"--flow", "7"}, {"/no/such/program"}).exit_code == 127);
  CHECK(RunExec(server, {"--flow", "7"}, {"/etc/passwd"}).exit_code == 126);
  CHECK(RunExec(server, {"--flow", "7:x"}, command).exit_code == 64);
  CHECK(RunExec(server, {}, command).exit_code == 64);
  const Finished twice = RunExec(server, {"--flow", "7", "--flow", "7:2"}, command);
  CHECK(twice.exit_code == 64);
  CHECK(Contains(twice.err, "--flow: 7 is given twice; write 7:COUNT"));
  Sleeper holder(server, dir, {"--flow", "7"});
  const Finished refused = RunExec(server, {"--flow", "7"}, command);
  CHECK(refused.exit_code == 120);
  CHECK(refused.out.empty());
  CHECK(refused.err == "nowcalls: flow 7 refused by level: 1 of 1 in progress\n");
  CHECK(RunExec(server, {"--flow", "7", "--refused-code", "1"}, command).exit_code == 1);
  CHECK(RunExec(server, {"--flow", "7", "--quiet"}, command).err.empty());
  CHECK(RunExec(server, {"--flow", "7", "--wait", "20ms"}, command).exit_code == 121);
  const Finished unreachable = RunProgram(ExecArgv(
      "127.0.0.1:1", {"--flow", "7", "--timeout", "200ms", "--fallback", "fail"}, command));
  CHECK(unreachable.exit_code == 122);
  CHECK(Contains(unreachable.err, "Connection refused"));
  for (const char* fallback : {"pass", "rule"}) {
    const Finished passed = RunProgram(ExecArgv(
        "127.0.0.1:1", {"--flow", "7", "--timeout", "200ms", "--fallback", fallback}, command));
    CHECK(passed.out == "ran\n");
    CHECK(Contains(passed.err, "the command runs without one, as --fallback says\n"));
  }
}

// UBSan opens a pipe before it believes an object, and tells of one if it cannot.
TEST_CASE("an exec for which the system has no room cannot run its command" *
          doctest::skip(testing::kAddressSanitized)) {
  std::vector<std::string> argv = {"/bin/sh", "-c", "ulimit -n 4; exec \"$@\"", "sh"};
  for (std::string& word : ExecArgv("127.0.0.1:1", {"--flow", "7"}, {"/bin/echo", "ran"})) {
    argv.push_back(std::move(word));
  }
  const Finished done = RunProgram(argv);
  CHECK(done.exit_code == 126);
  CHECK(done.out.empty());
  CHECK(done.err == "nowcalls: cannot make an eventfd: Too many open files\n");
}

TEST_CASE("signals are passed on, and the token is kept and then released") {
  TestServer server(RuleJson(7, 1, {{"resourceTimeout", 200}}));
  const TempDir dir;
  Sleeper sleeper(server, dir, {"--flow", "7"});
  sleeper.process().Signal(SIGUSR1);
  CHECK(PollUntil(kPatienceMs, [&] { return Contains(sleeper.out(), "usr1"); }));
  RpcClient rpc = server.Connect();
  CHECK(PollUntil(kPatienceMs, [&] {
    return rpc.Call("flow", {7}).result.at("counters").at("kept").get<int64_t>() > 3;
  }));
  CHECK(InProgress(server) == 1);
  sleeper.process().Signal(SIGTERM);
  CHECK(sleeper.process().Wait() == 7);
  CHECK(InProgress(server) == 0);
  CHECK(RunExec(server, {"--flow", "7"}, {"/bin/sh", "-c", "kill -9 $$"}).exit_code == 128 + 9);
}

TEST_CASE("by default a command runs without a server, since no rule says otherwise") {
  const Finished ran = RunProgram(
      ExecArgv("127.0.0.1:1", {"--flow", "7", "--timeout", "200ms"}, {"/bin/echo", "ran"}));
  CHECK(ran.exit_code == 0);
  CHECK(ran.out == "ran\n");
}

TEST_CASE("exec keeps its token whatever the rule says, unless it is asked not to") {
  TestServer server(RuleJson(7, 1, {{"resourceTimeout", 200}, {"resourceTimeoutStrategy", 1}}));
  const TempDir dir;
  for (const std::string keep : {"always", "rule", "off"}) {
    CAPTURE(keep);
    Sleeper sleeper(server, dir, {"--flow", "7", "--keep", keep, "--on-lost", "term"});
    if (keep == "always") {
      RpcClient rpc = server.Connect();
      CHECK(PollUntil(kPatienceMs, [&] {
        return rpc.Call("flow", {7}).result.at("counters").at("kept").get<int64_t>() > 3;
      }));
      sleeper.process().Signal(SIGTERM);
      CHECK(sleeper.process().Wait() == 7);
    } else {
      CHECK(sleeper.process().Wait() == 124);
    }
  }
}

TEST_CASE("a token that is lost is told, and ends the command if asked to") {
  TestServer server(RuleJson(7, 1, {{"resourceTimeout", 60'000}}));
  const TempDir dir;
  const auto reclaim = [&] {
    RpcClient rpc = server.Connect();
    REQUIRE(rpc.Call("reclaim_flow", {7, "a test"}).ok());
  };
  SUBCASE("not by default") {
    Sleeper sleeper(server, dir, {"--flow", "7"});
    reclaim();
    CHECK(PollUntil(kPatienceMs, [&] { return Contains(sleeper.err(), "of flow 7: admin\n"); }));
    CHECK(sleeper.process().Running());
    sleeper.process().Signal(SIGTERM);
    CHECK(sleeper.process().Wait() == 7);
  }
  SUBCASE("politely") {
    Sleeper sleeper(server, dir, {"--flow", "7", "--on-lost", "term"});
    reclaim();
    CHECK(sleeper.process().Wait() == 124);
    CHECK(Contains(sleeper.out(), "term"));
  }
  SUBCASE("at once") {
    Sleeper sleeper(server, dir, {"--flow", "7", "--on-lost", "kill"});
    reclaim();
    CHECK(sleeper.process().Wait() == 124);
    CHECK_FALSE(Contains(sleeper.out(), "term"));
  }
}

TEST_CASE("of several tokens that are lost at once each is told") {
  const Json minute = {{"resourceTimeout", 60'000}};
  TestServer server(Json::array({RuleJson(7, 1, minute), RuleJson(8, 1, minute)}));
  const TempDir dir;
  Sleeper sleeper(server, dir, {"--flow", "7", "--flow", "8"});
  // A stopped exec reads both losses together.
  sleeper.process().Stop();
  RpcClient rpc = server.Connect();
  for (const int flow : {7, 8}) REQUIRE(rpc.Call("reclaim_flow", {flow, "a test"}).ok());
  sleeper.process().Signal(SIGCONT);
  CHECK(PollUntil(kPatienceMs, [&] {
    return Contains(sleeper.err(), "of flow 7: admin") &&
           Contains(sleeper.err(), "of flow 8: admin");
  }));
  sleeper.process().Signal(SIGTERM);
  CHECK(sleeper.process().Wait() == 7);
}

TEST_CASE("a wait for room ends by a signal, and nothing runs or is held") {
  TestServer server(RuleJson(7, 1));
  const TempDir dir;
  Sleeper holder(server, dir, {"--flow", "7"});
  const auto waiting = [&] {
    RpcClient rpc = server.Connect();
    return rpc.Call("flow", {7}).result.at("waiters").get<int64_t>();
  };
  for (const int signal : {SIGTERM, SIGINT}) {
    CAPTURE(signal);
    Process::Options options;
    options.argv =
        ExecArgv(server.address(), {"--flow", "7", "--wait", "1h"}, {"/bin/echo", "ran"});
    options.stdout_path = dir.Sub("waiter");
    Process waiter(options);
    REQUIRE(PollUntil(kPatienceMs, [&] { return waiting() == 1; }));
    waiter.Signal(signal);
    CHECK(waiter.Wait() == (signal == SIGINT ? -SIGINT : 128 + signal));
    CHECK(PollUntil(kPatienceMs, [&] { return waiting() == 0; }));
  }
  CHECK(ReadFileToString(dir.Sub("waiter")).empty());
  CHECK(InProgress(server) == 1);
}

TEST_CASE("a signal that is ignored, as under nohup, does not end a wait") {
  TestServer server(RuleJson(7, 1));
  const TempDir dir;
  std::optional<Sleeper> holder;
  holder.emplace(server, dir, std::vector<std::string>{"--flow", "7"});
  std::string line = "trap '' HUP; exec";
  const std::vector<std::string> argv =
      ExecArgv(server.address(), {"--flow", "7", "--wait", "1h"}, {"/bin/echo", "ran"});
  for (const std::string& word : argv) line += " " + word;
  Process::Options options;
  options.argv = {"/bin/sh", "-c", line};
  options.stdout_path = dir.Sub("waiter");
  Process waiter(options);
  REQUIRE(PollUntil(kPatienceMs, [&] {
    RpcClient rpc = server.Connect();
    return rpc.Call("flow", {7}).result.at("waiters").get<int64_t>() == 1;
  }));
  waiter.Signal(SIGHUP);
  holder.reset();
  CHECK(waiter.Wait() == 0);
  CHECK(ReadFileToString(dir.Sub("waiter")) == "ran\n");
}

TEST_CASE("a command that ends by SIGINT ends exec in the same way") {
  TestServer server(RuleJson(7, 1));
  CHECK(RunExec(server, {"--flow", "7"}, {"/bin/sh", "-c", "kill -2 $$"}).exit_code == -SIGINT);
  CHECK(RunExec(server, {"--flow", "7"}, {"/bin/sh", "-c", "exit 130"}).exit_code == 130);
  CHECK(InProgress(server) == 0);
}

TEST_CASE("exec stops and goes on with its command") {
  TestServer server(RuleJson(7, 1, {{"resourceTimeout", 60'000}}));
  const TempDir dir;
  Sleeper sleeper(server, dir, {"--flow", "7"});
  const pid_t pid = sleeper.process().pid();
  const pid_t command = sleeper.command();
  sleeper.process().Signal(SIGTSTP);
  CHECK(PollUntil(kPatienceMs, [&] { return StateOf(command) == 'T' && StateOf(pid) == 'T'; }));
  sleeper.process().Signal(SIGCONT);
  CHECK(PollUntil(kPatienceMs, [&] { return StateOf(command) != 'T' && StateOf(pid) != 'T'; }));
  kill(command, SIGSTOP);  // No job control: exec goes on keeping the token.
  CHECK(PollUntil(kPatienceMs, [&] { return StateOf(command) == 'T'; }));
  sleeper.process().Signal(SIGUSR1);
  kill(command, SIGCONT);
  CHECK(PollUntil(kPatienceMs, [&] { return Contains(sleeper.out(), "usr1"); }));
  CHECK(StateOf(pid) != 'T');
}

TEST_CASE("the command's standard streams are its own") {
  TestServer server(RuleJson(7, 1));
  const TempDir dir;
  WriteStringToFile(dir.Sub("in"), "what comes in\n");
  Process::Options process;
  process.argv = ExecArgv(server.address(), {"--flow", "7"}, {"/bin/cat"});
  process.stdin_path = dir.Sub("in");
  process.stdout_path = dir.Sub("out");
  CHECK(Process(process).Wait() == 0);
  CHECK(ReadFileToString(dir.Sub("out")) == "what comes in\n");
}

TEST_CASE("a crowd of commands never exceeds the level, and leaves nothing behind untold") {
  const int runs = Whole() ? 1000 : 100;
  TestServer server(RuleJson(7, 7, {{"resourceTimeout", 60'000}}));
  const TempDir dir;
  SUBCASE("while the server is there") {
    Process crowd = StartCrowd(server, dir, runs);
    CHECK(crowd.Wait(20 * kPatienceMs) == 0);
  }
  SUBCASE("while it is killed and started again") {
    server.server().StayOnPort();
    Process crowd = StartCrowd(server, dir, runs);
    // Each restart spares tokens whose release had no answer. Were all room theirs, it had no end.
    constexpr int kRestarts = 60;
    int restarts = 0;
    do {
      if (restarts++ < kRestarts) server.server().Restart();
    } while (!crowd.Wait(500));
  }
  CHECK(ReadFileToString(dir.Sub("crowd.out")).empty());
  CheckCrowd(dir, runs, 7);
  const int64_t left = UnansweredReleases(dir);
  CHECK(PollUntil(kPatienceMs, [&] { return InProgress(server) <= left; }));
}

}  // namespace nowcalls::testing
