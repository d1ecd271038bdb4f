#include "bench/process_usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "base/check.h"

namespace nowcalls::bench {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

Result<double> CpuSecondsOf(const std::string& stat, int64_t ticks_per_s) {
  // PID (NAME) STATE and 10 more fields, then utime and stime; proc(5).
  constexpr int kFieldsBetween = 11;
  // The last bracket: the name may have brackets and blanks.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return Status::NotFound("no such process");
  std::istringstream fields(stat.substr(name_end + 1));
  std::string skipped;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> skipped;
  uint64_t user_ticks = 0;
  uint64_t system_ticks = 0;
  fields >> user_ticks >> system_ticks;
  if (!fields) return Status::NotFound("/proc/PID/stat is not understood");
  return static_cast<double>(user_ticks + system_ticks) / static_cast<double>(ticks_per_s);
}

Result<ProcessUsage> ReadProcessUsage(int64_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const Result<double> cpu_s = CpuSecondsOf(ReadAll(folder + "/stat"), sysconf(_SC_CLK_TCK));
  if (!cpu_s.ok()) return cpu_s.status();
  std::istringstream pages(ReadAll(folder + "/statm"));
  uint64_t total = 0;
  uint64_t resident = 0;
  pages >> total >> resident;
  return ProcessUsage{*cpu_s, resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE))};
}

double OwnCpuSeconds() {
  rusage usage{};
  NOWCALLS_CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

}  // namespace nowcalls::bench
