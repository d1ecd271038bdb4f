// The figures of a run, out of what nowcalls-bench prints with --format json.
//
// Thread: any.
#ifndef NOWCALLS_BENCH_BENCH_FIGURES_H_
#define NOWCALLS_BENCH_BENCH_FIGURES_H_

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "nowcalls/status.h"

namespace nowcalls::compare {

using Json = nlohmann::ordered_json;

// Figures by their key; a round of a scenario gives some of them.
using Values = std::map<std::string, double>;

inline constexpr std::string_view kOperations = "operations_per_s";
inline constexpr std::string_view kP50 = "p50_us";  // Of acquires and releases together.
inline constexpr std::string_view kP99 = "p99_us";
inline constexpr std::string_view kP999 = "p99.9_us";
// Of acquires alone. On a schedule these are due whatever came before, while a release is due only
// when its token is there.
inline constexpr std::string_view kAcquireP50 = "acquire_p50_us";
inline constexpr std::string_view kAcquireP99 = "acquire_p99_us";
inline constexpr std::string_view kAcquireP999 = "acquire_p99.9_us";
// Percent of one CPU while it was counted. A client near 100 % could not have done more.
inline constexpr std::string_view kClientCpu = "client_cpu_percent";
inline constexpr std::string_view kServerCpu = "server_cpu_percent";
inline constexpr std::string_view kResidentBytes = "resident_bytes";  // The server's, at the end.
inline constexpr std::string_view kCountedS = "counted_s";

// kInvalidArgument: it is not what nowcalls-bench prints. A run of `idle` has no operations.
Result<Json> ParseBenchOutput(const std::string& output);
Result<Values> ValuesOf(const Json& run);

}  // namespace nowcalls::compare

#endif  // NOWCALLS_BENCH_BENCH_FIGURES_H_
