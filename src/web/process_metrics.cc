#include "web/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>

namespace nowcalls::web {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

uint64_t OpenFiles() {
  std::error_code gone;
  const std::filesystem::directory_iterator files("/proc/self/fd", gone);
  return gone ? 0 : static_cast<uint64_t>(std::distance(begin(files), end(files)));
}

// Seconds since the epoch. Of /proc/self/stat the 22nd field, of /proc/stat the line btime.
double StartTime() {
  std::ifstream own("/proc/self/stat");
  std::string stat((std::istreambuf_iterator<char>(own)), {});
  // The second field is the name in brackets, which may have blanks: the third begins behind it.
  std::istringstream fields(stat.substr(stat.rfind(')') + 1));
  std::string field;
  double ticks = 0;
  for (int i = 3; i < 22 && fields >> field; ++i) {
  }
  fields >> ticks;
  std::ifstream machine("/proc/stat");
  double booted = 0;
  for (std::string key; machine >> key;) {
    if (key == "btime" && machine >> booted) break;
  }
  return booted + ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

void WriteProcessMetrics(MetricWriter* writer) {
  static const double started = StartTime();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  uint64_t pages = 0;
  uint64_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident_pages;
  const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto write = [&](std::string_view name, MetricType type, std::string_view help,
                         auto value) {
    writer->Family(name, type, help);
    writer->Sample({}, value);
  };
  write("process_cpu_seconds", MetricType::kCounter, "CPU time, of user and system.",
        Seconds(usage.ru_utime) + Seconds(usage.ru_stime));
  write("process_resident_memory_bytes", MetricType::kGauge, "Resident memory.",
        resident_pages * page_bytes);
  write("process_virtual_memory_bytes", MetricType::kGauge, "Virtual memory.", pages * page_bytes);
  write("process_open_fds", MetricType::kGauge, "Open file descriptors.", OpenFiles());
  write("process_max_fds", MetricType::kGauge, "File descriptors that may be open.",
        static_cast<uint64_t>(files.rlim_cur));
  write("process_start_time_seconds", MetricType::kGauge,
        "When the process began, since the epoch.", started);
}

}  // namespace nowcalls::web
