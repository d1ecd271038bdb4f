#include "bench/commands.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

namespace nowcalls::bench {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

std::unique_ptr<LoadResult> Refused(uint64_t by_level, uint64_t by_disk) {
  auto result = std::make_unique<LoadResult>();
  result->load.Count(0, kSecond);
  for (uint64_t i = 0; i < by_level; ++i) result->load.Refused(RefusedBy::kLevel, 1, 2);
  for (uint64_t i = 0; i < by_disk; ++i) result->load.Refused(RefusedBy::kDiskLow, 1, 2);
  return result;
}

std::string Judged(const Options& options, LoadResult* result) {
  result->seconds = result->load.TakeSeconds(kSecond);
  return Judge(options, *result).message();
}

TEST_CASE("a load of which nothing was granted has failed, and is told by what") {
  CHECK(Judged({}, Refused(0, 3).get()) ==
        "nothing was granted: 3 requests were refused (disk_low 3)");
  CHECK(Judged({}, Refused(2, 3).get()) ==
        "nothing was granted: 5 requests were refused (level 2, disk_low 3)");
  CHECK(Judged({}, Refused(1, 0).get()) == "nothing was granted: 1 request was refused (level 1)");
  const auto unknown = Refused(0, 0);
  unknown->load.Refused(RefusedBy::kOther, 1, 2);
  CHECK(Judged({}, unknown.get()).find("(other 1)") != std::string::npos);
}

TEST_CASE("a load has not failed when something was granted, or nothing was refused") {
  const auto some = Refused(5, 0);
  some->load.Granted(1, 2);
  CHECK(Judged({}, some.get()).empty());
  // What was granted before the counted seconds is held all through them.
  const auto full = Refused(5, 0);
  full->granted_ever = 5;
  CHECK(Judged({}, full.get()).empty());
  CHECK(Judged({}, Refused(0, 0).get()).empty());
  Options idle;
  idle.command = Command::kIdle;
  CHECK(Judged(idle, Refused(0, 0).get()).empty());
}

TEST_CASE("a run with errors has failed") {
  const auto result = Refused(0, 0);
  result->load.Granted(1, 2);
  result->load.Failed("OVERLOADED", "", 3);
  CHECK(Judged({}, result.get()).find("errors") != std::string::npos);
}

TEST_CASE("a fill has failed when it has not got all its tokens, also after the counted seconds") {
  Options options;
  options.command = Command::kFill;
  options.tokens = 10;
  const auto result = Refused(1, 0);
  result->load.Granted(1, 2);
  result->granted_ever = 9;
  CHECK(Judged(options, result.get()) == "only 9 of 10 tokens were granted");
  result->interrupted = true;
  CHECK(Judge(options, *result).message() ==
        "only 9 of 10 tokens were granted until it was interrupted");
  result->granted_ever = 10;
  CHECK(Judge(options, *result).ok());
}

}  // namespace
}  // namespace nowcalls::bench
