// nowcalls-bench-report as a program. What is fast is not asked here.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "bench/contender.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "test_paths.h"

namespace nowcalls::compare {
namespace {

using testing::Finished;
using testing::TempDir;

constexpr int64_t kRunMsMax = 120'000;

std::vector<std::string> ReportCommand(std::vector<std::string> words) {
  words.insert(words.begin(), NOWCALLS_TEST_BIN_DIR "/nowcalls-bench-report");
  return words;
}

bool HasProgram(const std::string& name) {
  if (!FindProgram(name).empty()) return true;
  MESSAGE("skipped: there is no " << name << " on PATH");
  return false;
}

bool HasPicture(const std::string& page, const std::string& name) {
  return page.find("](" + name + ".svg)\n") != std::string::npos;
}

TEST_CASE("nowcalls-bench-report draws every curve of both servers, and leaves nothing else") {
  if (!HasProgram("redis-server") || !HasProgram("gnuplot")) return;
  const TempDir dir;
  const std::string out = dir.Sub("report");
  const Finished run = testing::RunProgram(
      ReportCommand({"--quick", "--dir", dir.Sub("bench"), "--out", out}), {}, kRunMsMax);
  CAPTURE(run.err);
  CAPTURE(run.out);
  REQUIRE(run.exit_code == 0);
  CHECK(run.out.ends_with("report: " + out + "/index.md\n"));
  CHECK(std::filesystem::is_empty(dir.Sub("bench")));
  const std::string page = testing::ReadFileToString(out + "/index.md");
  CAPTURE(page);
  CHECK(page.find("| - |") == std::string::npos);
  for (const char* name : {"throughput-in-flight", "p99-in-flight", "throughput-connections",
                           "cpu-connections", "throughput-flows", "cpu-flows", "memory-flows",
                           "memory-a-session", "ready-tokens", "memory-tokens", "memory-a-token"}) {
    CAPTURE(name);
    CHECK(HasPicture(page, name));
    const std::string path = out + "/" + name;
    const std::string data = testing::ReadFileToString(path + ".dat");
    CHECK(data.find("# nowcalls: ") != std::string::npos);
    CHECK(data.find("# Redis: ") != std::string::npos);
    CHECK(testing::ReadFileToString(path + ".svg").find("</svg>") != std::string::npos);
  }
}

TEST_CASE("nowcalls-bench-report says which programs it needs") {
  const Finished run = testing::RunProgram(ReportCommand({"--quick"}), {{"PATH", "/none"}});
  CHECK(run.exit_code == 69);
  CHECK(run.err.find("redis-server and gnuplot") != std::string::npos);
}

}  // namespace
}  // namespace nowcalls::compare
