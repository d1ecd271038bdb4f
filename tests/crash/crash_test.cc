#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "base/clock.h"
#include "crash/cluster_end.h"
#include "crash/cluster_loop.h"
#include "crash/crash_loop.h"
#include "support/process.h"
#include "test_paths.h"

namespace nowcalls::crash {
namespace {

int CyclesDuring(const CrashLoopResult& result, const std::string& moment) {
  int cycles = 0;
  for (const auto& [name, count] : result.moments) {
    if (name.starts_with(moment)) cycles += count;
  }
  return cycles;
}

TEST_CASE("twenty kills under load lose nothing, invent nothing and repeat nothing") {
  CrashLoopOptions options;
  options.seed = RandomBits128()[0];
  MESSAGE("SEED ", options.seed, "; again with: nowcalls-crash-loop 20 --seed ", options.seed);
  const CrashLoopResult result = RunCrashLoop(options);
  CAPTURE(result.dir);
  for (const auto& violation : result.violations) FAIL_CHECK(violation);
  CHECK(result.cycles == 20);
  CHECK(result.acknowledged > 1'000);
  CHECK(result.unknown > 0);
  for (const char* moment : {"recovery", "backup", "rules load", "sweep"}) {
    CAPTURE(moment);
    CHECK(CyclesDuring(result, moment) == 3);
  }
  // Each of these cycles tries until it hits.
  CHECK(result.starts.at("in it") >= 1);
  for (const char* what :
       {"acquires with a request id granted", "acquires that might wait granted",
        "acquires asked again and answered with their token", "cancels answered",
        "reclaims of a token answered", "reclaims of a flow answered", "groups granted",
        "groups asked again and answered with their tokens", "groups left unanswered"}) {
    CAPTURE(what);
    CHECK(result.tally.at(what) > 0);
  }
}

TEST_CASE("kills from within, between any two calls on files, lose nothing either") {
  CrashLoopOptions options;
  options.whitebox = true;
  options.cycles = 10;
  options.seed = RandomBits128()[0];
  MESSAGE("SEED ", options.seed, "; again with: nowcalls-crash-loop 10 --whitebox --seed ",
          options.seed);
  const CrashLoopResult result = RunCrashLoop(options);
  CAPTURE(result.dir);
  for (const auto& violation : result.violations) FAIL_CHECK(violation);
  CHECK(result.cycles == 10);
  // The timer ends some, but hardly two in a row: behind it comes a point that a start reaches.
  const auto by_timer = result.fired.find("timer");
  CHECK((by_timer == result.fired.end() || 2 * by_timer->second <= result.cycles));
}

TEST_CASE("whatever ends the time of a writer, the next one has all that was answered") {
  CrashLoopOptions options;
  options.cycles = 4;
  options.seed = RandomBits128()[0];
  MESSAGE("SEED ", options.seed, "; again with: nowcalls-crash-loop 4 --cluster --seed ",
          options.seed);
  options.progress = [](const std::string& line) {
    if (line.starts_with("skipped: ")) MESSAGE(line);
  };
  const CrashLoopResult result = RunClusterLoop(options);
  CAPTURE(result.dir);
  for (const auto& violation : result.violations) FAIL_CHECK(violation);
  CHECK(result.cycles == 4);
  CHECK(result.acknowledged > 1'000);
}

// The fault, in nowcalls-etcd.so of the servers of the tests (faults/faulty_etcd.cc), and the end
// of a writer that shows it.
CrashLoopResult RunWithFault(const std::string& fault, ClusterEnd end) {
  CrashLoopOptions options;
  options.cycles = 10;
  options.seed = RandomBits128()[0];
  MESSAGE("SEED ", options.seed);
  return RunClusterLoop(options,
                        {.program = std::string(NOWCALLS_TEST_BIN_DIR) + "/nowcalls-faulty-server",
                         .environment = {{"FAULTY_ETCD", fault}},
                         .only_end = NameOf(end)});
}

// Members may notice a fault themselves and refuse to serve, before a client can see it.
void CheckFound(const std::string& fault, ClusterEnd end) {
  constexpr int kAttempts = 8;
  bool broken_promise = false;
  for (int i = 0; i < kAttempts && !broken_promise; ++i) {
    const CrashLoopResult result = RunWithFault(fault, end);
    REQUIRE(!result.violations.empty());
    MESSAGE("found: ", result.violations.front());
    for (const std::string& violation : result.violations) {
      broken_promise = broken_promise || violation.starts_with("I");
    }
    std::filesystem::remove_all(result.dir);
  }
  CHECK(broken_promise);
}

TEST_CASE("a planted fault is found: a deposed writer that goes on and appends by no claim") {
  CheckFound("unfenced", ClusterEnd::kStop);
}

TEST_CASE("a planted fault is found: a writer that answers before its log has the batch") {
  CheckFound("hasty", ClusterEnd::kKill);
}

TEST_CASE("the demo holds, of one server and of a cluster") {
  const std::string demo = std::string(NOWCALLS_TEST_BIN_DIR) + "/nowcalls-demo";
  for (const bool cluster : {false, true}) {
    std::vector<std::string> command = {demo};
    if (cluster) command.emplace_back("--cluster");
    const testing::Finished shown = testing::RunProgram(command);
    CAPTURE(shown.out);
    CAPTURE(shown.err);
    CHECK(shown.exit_code == 0);
  }
}

TEST_CASE("the demo refuses what it does not know before it begins") {
  const std::string demo = std::string(NOWCALLS_TEST_BIN_DIR) + "/nowcalls-demo";
  const testing::Finished help = testing::RunProgram({demo, "--help"});
  CHECK(help.exit_code == 0);
  CHECK(help.out.starts_with("usage: nowcalls-demo [--cluster]\n"));
  const testing::Finished wrong = testing::RunProgram({demo, "--fast"});
  CHECK(wrong.exit_code == 64);
  CHECK(wrong.err.starts_with("nowcalls-demo: '--fast' is no argument of the demo\nusage: "));
  CHECK(wrong.out.empty());
}

}  // namespace
}  // namespace nowcalls::crash
