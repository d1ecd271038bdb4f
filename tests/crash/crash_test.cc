#include <doctest/doctest.h>

#include <string>

#include "base/clock.h"
#include "crash/crash_loop.h"

namespace nowcalls::crash {
namespace {

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
}

}  // namespace
}  // namespace nowcalls::crash
