// What a process has used, as the kernel counts it.
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

// From /proc. kNotFound: there is no such process, or it may not be looked at.
Result<ProcessUsage> ReadProcessUsage(int64_t pid);

// CPU seconds of the calling process.
double OwnCpuSeconds();

// Processor seconds, from the text of /proc/PID/stat; the name of the program may hold anything.
Result<double> CpuSecondsOf(const std::string& stat, int64_t ticks_per_s);

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_PROCESS_USAGE_H_
