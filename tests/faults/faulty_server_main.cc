// nowcalls-faulty-server: nowcalls-server as it is, but for a disk of which a call fails or at one
// call of which it is killed, and buffers so small that a few hundred calls flush and compact.
//
//   FAULTY_DISK="NTH[ sticky][ full]"   which call of RocksDB fails, from there on, with ENOSPC
//   FAULTY_DISK="NTH[ writes] kill-WHEN"  at which call, of those that write, it gets SIGKILL;
//                                       WHEN: before, middle, after
//   FAULTY_DISK="NTH only CALL FILE"    counts only calls of this name (one word) on files with
//   this
//                                       in their names
//   FAULTY_DISK_GATE=FIFO               no call before this is there counts, and the one that fails
//                                       waits for who opens it for writing
//   FAULTY_DISK_NOTE=FILE               gets the time (CLOCK_BOOTTIME, us) and that call
//   ROCKSDB_KILL_ODDS=N                 RocksDB's kill points end it once in N times
#include <rocksdb/env.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>

#include "base/clock.h"
#include "faults/faulty_file_system.h"
#include "faults/life.h"
#include "faults/rocks_kill_points.h"
#include "server/main.h"
#include "support/process.h"

namespace {

std::string Setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

nowcalls::faults::Failure WantedFailure() {
  nowcalls::faults::Failure failure;
  std::istringstream words(Setting("FAULTY_DISK"));
  words >> failure.nth;
  for (std::string word; words >> word;) {
    if (word == "sticky") failure.sticky = true;
    if (word == "full") failure.disk_full = true;
    if (word == "only") words >> failure.only_call >> failure.only_file;
    if (word == "writes") failure.writes_only = true;
    if (word == "kill-before") failure.kill = nowcalls::faults::KillAt::kBefore;
    if (word == "kill-middle") failure.kill = nowcalls::faults::KillAt::kMiddle;
    if (word == "kill-after") failure.kill = nowcalls::faults::KillAt::kAfter;
  }
  failure.gate = Setting("FAULTY_DISK_GATE");
  return failure;
}

}  // namespace

// A kill point of RocksDB sends SIGTERM to its own process, which a server takes for a request to
// end in good order. In place of the library's function, so that it kills.
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): glibc's names are reserved.
extern "C" int kill(pid_t pid, int signal) noexcept {
  if (pid == getpid() && signal == SIGTERM) signal = SIGKILL;
  return static_cast<int>(syscall(SYS_kill, pid, signal));
}

int main(int argc, char** argv) {
  const std::string note = Setting("FAULTY_DISK_NOTE");
  const auto files = std::make_shared<nowcalls::faults::FaultyFileSystem>(
      rocksdb::FileSystem::Default(), WantedFailure(), [&](const std::string& call) {
        nowcalls::testing::WriteStringToFile(note,
                                             std::to_string(nowcalls::BoottimeUs()) + " " + call);
      });
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(files);
  nowcalls::store::RocksStoreOptions store = nowcalls::faults::SmallOptions();
  store.wal_bytes_max = 4 * 1024;
  store.env = env.get();
  nowcalls::faults::SetRocksKillOdds(std::max(0, std::atoi(Setting("ROCKSDB_KILL_ODDS").c_str())));
  return nowcalls::server::Main(argc, argv, store);
}
