#include "bench/machine_facts.h"

#include <fcntl.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <exception>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "bench/contender.h"
#include "support/process.h"
#include "test_paths.h"

namespace nowcalls::compare {
namespace {

constexpr int kSyncs = 100;
constexpr size_t kSyncBytes = 4096;
constexpr double kGiB = 1024.0 * 1024 * 1024;

// The first line that a program prints; empty when it cannot be run.
std::string FirstLineOf(const std::vector<std::string>& command) {
  try {
    const testing::Finished finished = testing::RunProgram(command);
    return finished.exit_code == 0 ? finished.out.substr(0, finished.out.find('\n')) : "";
  } catch (const std::exception&) {
    return "";
  }
}

std::string RedisVersion(const std::string& program) {
  const std::string line = program.empty() ? "" : FirstLineOf({program, "--version"});
  const size_t at = line.find("v=");
  if (at == std::string::npos) return "none";
  return "Redis " + line.substr(at + 2, line.find(' ', at) - at - 2);
}

// Whether everything in `path` is below the directory `mount`.
bool Contains(const std::string& mount, const std::string& path) {
  if (mount == "/") return true;
  return path.starts_with(mount) && (path.size() == mount.size() || path[mount.size()] == '/');
}

}  // namespace

Spread MeasureFdatasync(const std::string& dir) {
  const std::string path = dir + "/fdatasync";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return {};
  const std::string block(kSyncBytes, 'x');
  std::vector<double> took_us;
  for (int i = 0; i < kSyncs; ++i) {
    const int64_t begin_ns = MonotonicNs();
    if (::write(fd, block.data(), block.size()) < 0 || ::fdatasync(fd) != 0) break;
    took_us.push_back(static_cast<double>(MonotonicNs() - begin_ns) / 1e3);
  }
  ::close(fd);
  ::unlink(path.c_str());
  return SpreadOf(std::move(took_us)).value_or(Spread{});
}

std::string FdatasyncText(const Spread& took_us) {
  return "fdatasync of 4 KiB in " + Decimal(took_us.median, 0) + " us, at most " +
         Decimal(took_us.max, 0);
}

std::string ReadLoad() {
  const std::string load = testing::ReadFileToString("/proc/loadavg");
  return load.substr(0, load.find(' '));
}

std::string CpuInfoField(const std::string& cpuinfo, const std::string& name) {
  std::istringstream lines(cpuinfo);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || !line.starts_with(name)) continue;
    const size_t name_end = line.find_last_not_of(" \t", colon - 1) + 1;
    if (name_end != name.size()) continue;
    const size_t begin = line.find_first_not_of(' ', colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::string DiskOf(const std::string& mountinfo, const std::string& path) {
  // ID PARENT MAJOR:MINOR ROOT MOUNT OPTIONS [FIELD...] - TYPE SOURCE OPTIONS; proc(5).
  std::string best;
  std::string disk;
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    std::string mount;
    for (int i = 0; i < 5; ++i) words >> mount;
    while (words >> word && word != "-") continue;
    std::string type;
    std::string source;
    if (!(words >> type >> source)) continue;
    // Of mounts on the same place the last one counts.
    if (!Contains(mount, path) || mount.size() < best.size()) continue;
    best = mount;
    disk = type;
    disk += " on " + source;
  }
  return disk;
}

MachineFacts ReadMachineFacts(const std::string& dir, const std::string& redis_program) {
  MachineFacts facts;
  facts.date = WallText(WallMs());
  const std::string cpuinfo = testing::ReadFileToString("/proc/cpuinfo");
  facts.cpu = CpuInfoField(cpuinfo, "model name");
  facts.cores = std::thread::hardware_concurrency();
  struct sysinfo memory {};
  if (::sysinfo(&memory) == 0) facts.memory_bytes = memory.totalram * uint64_t{memory.mem_unit};
  utsname system{};
  if (::uname(&system) == 0) {
    facts.kernel = std::string(system.sysname) + " " + system.release + " " + system.machine;
  }
  facts.disk = DiskOf(testing::ReadFileToString("/proc/self/mountinfo"), dir);
  facts.in_memory = facts.disk.starts_with("tmpfs") || facts.disk.starts_with("ramfs");
  facts.fdatasync_us = MeasureFdatasync(dir);
  facts.load = ReadLoad();
  facts.nowcalls = FirstLineOf({testing::ProductBinary("nowcalls-server"), "--version"});
  facts.redis = RedisVersion(redis_program);
  const std::string git = FindProgram("git");
  if (!git.empty()) {
    facts.commit =
        FirstLineOf({git, "-C", NOWCALLS_SOURCE_DIR, "describe", "--always", "--dirty", "--tags"});
  }
  return facts;
}

std::vector<std::pair<std::string, std::string>> MachineFacts::Lines() const {
  return {{"date", date},
          {"cpu", cpu + ", " + std::to_string(cores) + " cores"},
          {"memory", Decimal(static_cast<double>(memory_bytes) / kGiB, 1) + " GiB"},
          {"kernel", kernel},
          {"disk", disk + ", " + FdatasyncText(fdatasync_us)},
          {"load before", load},
          {"servers", nowcalls + ", durability sync; " + redis + ", appendfsync always"},
          {"source", commit.empty() ? "commit unknown" : commit}};
}

std::string MachineFacts::Table() const {
  std::string text;
  for (const auto& [name, value] : Lines()) {
    text += name + std::string(13 - name.size(), ' ') + value + "\n";
  }
  if (in_memory)
    text += "NOTE         this directory is in memory: nothing here waits for a disk\n";
  return text;
}

Json MachineFacts::ToJson() const {
  return {{"date", date},
          {"cpu", cpu},
          {"cores", cores},
          {"memory_bytes", memory_bytes},
          {"kernel", kernel},
          {"disk", disk},
          {"fdatasync_us", fdatasync_us.median},
          {"fdatasync_max_us", fdatasync_us.max},
          {"load", load},
          {"nowcalls", nowcalls},
          {"redis", redis},
          {"commit", commit}};
}

}  // namespace nowcalls::compare
