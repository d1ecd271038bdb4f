// What a figure is worth nothing without: the machine, the disk and the versions.
//
// Thread: any.
#ifndef NOWCALLS_BENCH_MACHINE_FACTS_H_
#define NOWCALLS_BENCH_MACHINE_FACTS_H_

#include <string>
#include <utility>
#include <vector>

#include "bench/bench_figures.h"
#include "bench/statistics.h"

namespace nowcalls::compare {

struct MachineFacts {
  std::string date;
  std::string cpu;
  unsigned cores = 0;
  uint64_t memory_bytes = 0;
  std::string kernel;
  std::string disk;      // File system and device of the directory.
  Spread fdatasync_us;   // Of some, each of 4 KiB appended to a file there.
  std::string load;      // Of the last minute, from /proc/loadavg.
  std::string nowcalls;  // Versions.
  std::string redis;
  std::string commit;      // Of the source; empty when git does not tell.
  bool in_memory = false;  // The directory is no disk at all.

  std::vector<std::pair<std::string, std::string>> Lines() const;
  std::string Table() const;
  Json ToJson() const;
};

// Looks at the machine, and writes and removes a file in `dir`.
MachineFacts ReadMachineFacts(const std::string& dir, const std::string& redis_program);

// How long an fdatasync in `dir` takes, in microseconds. The longest tells of a disk that others
// use.
Spread MeasureFdatasync(const std::string& dir);
std::string FdatasyncText(const Spread& took_us);
// The machine's load of the last minute.
std::string ReadLoad();

// The value of the first line "NAME : VALUE" of /proc/cpuinfo; empty when there is none.
std::string CpuInfoField(const std::string& cpuinfo, const std::string& name);

// "ext4 on /dev/vda" for the mount of `path` in the text of /proc/self/mountinfo.
std::string DiskOf(const std::string& mountinfo, const std::string& path);

}  // namespace nowcalls::compare

#endif  // NOWCALLS_BENCH_MACHINE_FACTS_H_
