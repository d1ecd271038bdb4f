// CPU and memory that a process used.
//
// Thread: any.
#ifndef NOWCALLS_BENCH_PROCESS_USAGE_H_
#define NOWCALLS_BENCH_PROCESS_USAGE_H_

#include <cstdint>
#include <string>

#include "nowcalls/status.h"

namespace nowcalls::bench {

struct ProcessUsage {
  double cpu_s = 0;  // User and system, of all its threads; another process's in steps of 10 ms.
  uint64_t resident_bytes = 0;
};

// kNotFound: no such process, or hidden.
Result<ProcessUsage> ReadProcessUsage(int64_t pid);

// Of the calling process.
double OwnCpuSeconds();

// From /proc/PID/stat.
Result<double> CpuSecondsOf(const std::string& stat, int64_t ticks_per_s);

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_PROCESS_USAGE_H_
