// The report of a run.
//
// Thread: any.
#ifndef NOWCALLS_BENCH_REPORT_H_
#define NOWCALLS_BENCH_REPORT_H_

#include <string>

#include "bench/load_loop.h"
#include "bench/options.h"
#include "bench/target.h"

namespace nowcalls::bench {

// For a terminal.
std::string ReportTable(const Options& options, const ServerFacts& facts, const LoadResult& result);
// One JSON object and a newline; latencies in us.
std::string ReportJson(const Options& options, const ServerFacts& facts, const LoadResult& result);

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_REPORT_H_
