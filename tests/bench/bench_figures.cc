#include "bench/bench_figures.h"

namespace nowcalls::compare {
namespace {

constexpr double kPercent = 100;

void Put(std::string_view key, double value, Values* values) {
  (*values)[std::string(key)] = value;
}

}  // namespace

Result<Json> ParseBenchOutput(const std::string& output) {
  Json run = Json::parse(output, nullptr, /*allow_exceptions=*/false);
  if (run.is_object() && run.contains("nowcalls_bench")) return run;
  return Status::InvalidArgument("nowcalls-bench printed no JSON object of its own, but " +
                                 std::to_string(output.size()) + " bytes of something else");
}

Result<Values> ValuesOf(const Json& run) {
  Values values;
  try {
    const double counted_s = run.at("counted_s");
    if (counted_s <= 0) return Status::InvalidArgument("nowcalls-bench counted for no time at all");
    Put(kCountedS, counted_s, &values);
    Put(kClientCpu, run.at("client_cpu_s").get<double>() / counted_s * kPercent, &values);
    if (const Json& server = run.at("server"); !server.is_null()) {
      Put(kServerCpu, server.at("cpu_s").get<double>() / counted_s * kPercent, &values);
      Put(kResidentBytes, server.at("resident_bytes"), &values);
    }
    if (!run.contains("operations_per_s")) return values;
    Put(kOperations, run.at("operations_per_s"), &values);
    const Json& both = run.at("latency_us").at("both");
    Put(kP50, both.at("p50"), &values);
    Put(kP99, both.at("p99"), &values);
    Put(kP999, both.at("p99.9"), &values);
    const Json& acquire = run.at("latency_us").at("acquire");
    Put(kAcquireP50, acquire.at("p50"), &values);
    Put(kAcquireP99, acquire.at("p99"), &values);
    Put(kAcquireP999, acquire.at("p99.9"), &values);
  } catch (const Json::exception& error) {
    return Status::InvalidArgument(std::string("a figure of nowcalls-bench is missing: ") +
                                   error.what());
  }
  return values;
}

}  // namespace nowcalls::compare
