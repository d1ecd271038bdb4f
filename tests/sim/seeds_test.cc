// The simulator over its seeds.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "sim/seed_runner.h"
#include "sim/simulation.h"
#include "test_paths.h"

namespace nowcalls::sim {
namespace {

constexpr uint64_t kSeeds = 200;

std::string Told(uint64_t seed, const RunResult& result) {
  std::string text = "SEED " + std::to_string(seed) + ", again with: " + ReplayCommand(seed);
  for (const std::string& violation : result.violations) text += "\n  " + violation;
  return text;
}

void CheckSeed(uint64_t seed) {
  const RunResult result = Run({.seed = seed});
  CHECK_MESSAGE(result.violations.empty(), Told(seed, result));
}

std::vector<uint64_t> Regressions() {
  std::ifstream file(std::string(NOWCALLS_SOURCE_DIR) + "/tests/sim/regressions.txt");
  REQUIRE(file.good());
  std::vector<uint64_t> seeds;
  for (std::string line; std::getline(file, line);) {
    uint64_t seed = 0;
    if (!line.starts_with("#") && std::istringstream(line) >> seed) seeds.push_back(seed);
  }
  return seeds;
}

TEST_CASE("no promise is broken under 200 seeds of faults") {
  const SeedTotals totals = RunSeeds({.seeds = kSeeds}, [](const std::string& text) {
    std::fprintf(stderr, "%s\n", text.c_str());
  });
  CHECK(totals.failures == 0);
  CHECK(totals.seeds == kSeeds);
  // Faults that do not happen prove nothing.
  for (size_t i = 0; i < kFaultCount; ++i) {
    CHECK_MESSAGE(totals.faults.counts[i] > 0, FaultName(static_cast<Fault>(i)));
  }
  CHECK(totals.granted > 100 * kSeeds);
}

TEST_CASE("seeds that once failed do not fail again") {
  for (const uint64_t seed : Regressions()) CheckSeed(seed);
}

TEST_CASE("a seed has one trace") {
  for (uint64_t seed = 1; seed <= kSeeds; seed += 13) {
    const RunResult once = Run({.seed = seed});
    const RunResult again = Run({.seed = seed});
    CHECK_MESSAGE(once.hash == again.hash, ReplayCommand(seed));
    CHECK(once.requests == again.requests);
  }
  CHECK(Run({.seed = 1}).hash != Run({.seed = 2}).hash);
}

}  // namespace
}  // namespace nowcalls::sim
