#include "bench/bench_figures.h"

#include <doctest/doctest.h>

namespace nowcalls::compare {
namespace {

constexpr char kLoad[] = R"({"nowcalls_bench": "0.1.0", "command": "load", "counted_s": 2.0,
  "operations": 3000, "operations_per_s": 1500.5, "latency_us": {
  "acquire": {"p50": 1, "p99": 2.5, "p99.9": 3},
  "both": {"count": 3000, "p50": 10.5, "p90": 15, "p99": 20.25, "p99.9": 30, "p99.99": 35,
  "max": 40}}, "client_cpu_s": 0.5, "server": {"pid": 7, "cpu_s": 1.5,
  "resident_bytes_before": 100, "resident_bytes": 4096}})";

double At(const Values& values, std::string_view key) { return values.at(std::string(key)); }

TEST_CASE("the figures of a load are those that nowcalls-bench printed") {
  const Result<Json> run = ParseBenchOutput(kLoad);
  REQUIRE(run.ok());
  const Result<Values> values = ValuesOf(*run);
  REQUIRE(values.ok());
  CHECK(At(*values, kOperations) == 1500.5);
  CHECK(At(*values, kP50) == 10.5);
  CHECK(At(*values, kP99) == 20.25);
  CHECK(At(*values, kP999) == 30);
  CHECK(At(*values, kAcquireP50) == 1);
  CHECK(At(*values, kAcquireP99) == 2.5);
  CHECK(At(*values, kAcquireP999) == 3);
  CHECK(At(*values, kClientCpu) == 25);
  CHECK(At(*values, kServerCpu) == 75);
  CHECK(At(*values, kResidentBytes) == 4096);
}

TEST_CASE("a run without a load has no operations, and one without a server's pid no server") {
  const Result<Json> run = ParseBenchOutput(
      R"({"nowcalls_bench": "0.1.0", "command": "idle", "counted_s": 1, "client_cpu_s": 0,
          "server": null})");
  REQUIRE(run.ok());
  const Result<Values> values = ValuesOf(*run);
  REQUIRE(values.ok());
  CHECK_FALSE(values->contains(std::string(kOperations)));
  CHECK_FALSE(values->contains(std::string(kServerCpu)));
}

TEST_CASE("what is not the output of nowcalls-bench is refused") {
  for (const char* text : {"", "nowcalls-bench: no", "[1]", "{}", "{\"operations_per_s\": 1}"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseBenchOutput(text).ok());
  }
  CHECK_FALSE(ValuesOf(Json{{"nowcalls_bench", "0.1.0"}}).ok());
  Json without_latency = Json::parse(kLoad);
  without_latency.erase("latency_us");
  CHECK(ValuesOf(without_latency).status().message().find("latency_us") != std::string::npos);
  Json no_time = Json::parse(kLoad);
  no_time["counted_s"] = 0;
  CHECK_FALSE(ValuesOf(no_time).ok());
}

}  // namespace
}  // namespace nowcalls::compare
