// FlowPicker, ProcessUsage, StatusLine and what the Redis target reads of INFO.
#include <doctest/doctest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "bench/flow_picker.h"
#include "bench/process_usage.h"
#include "bench/redis_target.h"
#include "bench/status_line.h"

namespace nowcalls::bench {
namespace {

TEST_CASE("flows are picked in turn, from the first") {
  FlowPicker picker(10, 3, FlowDistribution::kRoundRobin, 0);
  for (const uint32_t flow : {10U, 11U, 12U, 10U}) CHECK(picker.Next() == flow);
}

TEST_CASE("flows are drawn with equal chances, the same ones for a seed") {
  FlowPicker first(0, 4, FlowDistribution::kUniform, 7);
  FlowPicker second(0, 4, FlowDistribution::kUniform, 7);
  std::vector<int> drawn(4);
  for (int i = 0; i < 4000; ++i) {
    const uint32_t flow = first.Next();
    REQUIRE(flow < 4);
    CHECK(flow == second.Next());
    ++drawn[flow];
  }
  for (const int times : drawn) CHECK(times > 800);
}

TEST_CASE("a process's CPU time is found behind a name that looks like more fields") {
  const std::string stat =
      "123 (a) S 1 (b)) R 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 1 0 100 1000 10\n";
  CHECK(*CpuSecondsOf(stat, 100) == 2.0);
  CHECK_FALSE(CpuSecondsOf("", 100).ok());
  CHECK_FALSE(CpuSecondsOf("123 (a) R 1 2", 100).ok());
}

TEST_CASE("what this very process uses is told, and a process that is none is said to be none") {
  const Result<ProcessUsage> own = ReadProcessUsage(getpid());
  REQUIRE(own.ok());
  CHECK(own->resident_bytes > 0);
  CHECK(OwnCpuSeconds() >= 0);
  CHECK(ReadProcessUsage(INT32_MAX).status().code() == StatusCode::kNotFound);
}

TEST_CASE("the status line is written over and erased at the end, on a terminal only") {
  std::string screen;
  const auto write = [&screen](std::string_view bytes) { screen += bytes; };
  {
    StatusLine line(true, write);
    line.Show("one");
    line.Show("two");
  }
  CHECK(screen == "\r\x1b[Kone\r\x1b[Ktwo\r\x1b[K");
  screen.clear();
  {
    StatusLine line(false, write);
    line.Show("one");
  }
  CHECK(screen.empty());
}

TEST_CASE("fields of Redis' INFO are found by their whole name") {
  const std::string info = "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n";
  CHECK(InfoField(info, "redis_version") == "7.0.15");
  CHECK(InfoField(info, "redis_mode") == "standalone");
  CHECK(InfoField(info, "version").empty());
  CHECK(InfoField("", "redis_version").empty());
}

}  // namespace
}  // namespace nowcalls::bench
