// nowcalls-compare as a program. What is fast is not asked here.
#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/bench_figures.h"
#include "bench/contender.h"
#include "support/poll_until.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "test_paths.h"

namespace nowcalls::compare {
namespace {

using testing::Finished;
using testing::Process;
using testing::TempDir;

constexpr int64_t kProgramMsMax = 120'000;

std::vector<std::string> CompareCommand(std::vector<std::string> words) {
  words.insert(words.begin(), NOWCALLS_TEST_BIN_DIR "/nowcalls-compare");
  return words;
}

bool HasRedis() {
  if (!FindProgram("redis-server").empty()) return true;
  MESSAGE("skipped: there is no redis-server on PATH");
  return false;
}

bool IsEmpty(const std::string& dir) {
  return !std::filesystem::exists(dir) || std::filesystem::is_empty(dir);
}

TEST_CASE("nowcalls-compare measures both servers and leaves nothing but its JSON") {
  if (!HasRedis()) return;
  const TempDir dir;
  const std::string json_path = dir.Sub("figures.json");
  const Finished run = testing::RunProgram(
      CompareCommand({"--quick", "--only", "50 x 1", "--rounds", "2", "--duration", "0.2", "--dir",
                      dir.Sub("bench"), "--json", json_path}),
      {}, kProgramMsMax);
  CAPTURE(run.err);
  CAPTURE(run.out);
  REQUIRE(run.exit_code == 0);
  CHECK(run.out.find("50 x 1: closed loop, 50 connections with 1 in flight each") !=
        std::string::npos);
  CHECK(run.out.find("targets: ") != std::string::npos);
  CHECK(IsEmpty(dir.Sub("bench")));
  const Json json = Json::parse(testing::ReadFileToString(json_path));
  CHECK(json.at("quick") == true);
  CHECK(json.at("machine").at("cores") > 0);
  REQUIRE(json.at("scenarios").size() == 1);
  const Json& scenario = json.at("scenarios").at(0);
  CHECK(scenario.at("failures").empty());
  CHECK(scenario.at("runs").size() == 4);
  for (const char* side : {"nowcalls", "Redis"}) {
    CHECK(scenario.at("rounds").at(side).size() == 2);
    CHECK(scenario.at("figures").at(0).at(side).at("median") > 0);
  }
  CHECK(scenario.at("runs").at(0).at("target").at("durability") == "sync");
  CHECK(scenario.at("runs").at(1).at("target").at("durability") ==
        "appendonly yes, appendfsync always");
}

TEST_CASE("nowcalls-compare takes its servers and its directory along when it is interrupted") {
  if (!HasRedis()) return;
  const TempDir dir;
  const std::string bench = dir.Sub("bench");
  Process compare({CompareCommand({"--only", "50 x 1", "--duration", "600", "--dir", bench}), {}});
  // The first server serves.
  REQUIRE(testing::PollUntil(testing::kPatienceMs, [&bench] {
    if (!std::filesystem::exists(bench)) return false;
    for (const auto& run : std::filesystem::directory_iterator(bench)) {
      if (std::filesystem::exists(run.path() / "1-nowcalls" / "port")) return true;
    }
    return false;
  }));
  compare.Signal(SIGINT);
  CHECK(compare.Wait() == -SIGINT);
  CHECK(IsEmpty(bench));
}

TEST_CASE("nowcalls-compare names the scenarios that there are") {
  const Finished list = testing::RunProgram(CompareCommand({"--list"}));
  CHECK(list.exit_code == 0);
  CHECK(list.out.find("50 x 64\n") != std::string::npos);
  const Finished none = testing::RunProgram(CompareCommand({"--only", "nothing"}));
  CHECK(none.exit_code == 64);
  CHECK(none.err.find("'ready after kill -9'") != std::string::npos);
}

TEST_CASE("nowcalls-compare says that there is no redis-server") {
  const Finished run =
      testing::RunProgram(CompareCommand({"--quick", "--only", "50 x 1"}), {{"PATH", "/none"}});
  CHECK(run.exit_code == 69);
  CHECK(run.err.find("redis-server") != std::string::npos);
}

}  // namespace
}  // namespace nowcalls::compare
