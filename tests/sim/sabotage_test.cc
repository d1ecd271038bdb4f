// The simulator must be able to fail: servers that are broken on purpose (saboteur.h) are found.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "sim/simulation.h"

namespace nowcalls::sim {
namespace {

// The first invariant that is found broken; empty when none is under 200 seeds.
std::string Finds(Sabotage sabotage) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const RunResult result = Run({.seed = seed, .sabotage = sabotage});
    if (result.violations.empty()) continue;
    MESSAGE("seed ", seed, ": ", result.violations.front());
    return result.violations.front().substr(0, 2);
  }
  return {};
}

TEST_CASE("a reply before the commit is found as an acknowledged token that is not in the ledger") {
  CHECK(Finds(Sabotage::kReplyBeforeCommit) == "I1");
}

TEST_CASE("a lost release is found as a released token that is still there") {
  CHECK(Finds(Sabotage::kLostRelease) == "I2");
}

TEST_CASE("a token that is granted to two is found as one that was given before") {
  CHECK(Finds(Sabotage::kDoubleGrant) == "I6");
}

TEST_CASE("a fence that is given out twice is found as one that was given before") {
  CHECK(Finds(Sabotage::kFenceReused) == "I6");
}

TEST_CASE("a level that is off by one is found") { CHECK(Finds(Sabotage::kHighLevel) == "I5"); }

TEST_CASE("a sweep that finds nothing is found by the tokens that are left") {
  CHECK(Finds(Sabotage::kNoSweep) == "I7");
}

}  // namespace
}  // namespace nowcalls::sim
