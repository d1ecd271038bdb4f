#include "server/system.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace nowcalls::server {

void IgnoreSignals() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  // Until the server handles it; a start reads its rule files anyway.
  signal(SIGHUP, SIG_IGN);
  // Log rotation signals many servers. The log is stderr, so there is nothing to do.
  signal(SIGUSR1, SIG_IGN);
  signal(SIGUSR2, SIG_IGN);
  // A parent that ignored it would hide how a child ended: children verify backups.
  signal(SIGCHLD, SIG_DFL);
}

uint32_t ConnectionsThatFit(uint32_t wanted, uint64_t file_limit) {
  constexpr uint64_t kReservedFiles = 256;
  static_assert(kReservedFiles < kFileLimitMin);
  return static_cast<uint32_t>(std::min<uint64_t>(wanted, file_limit - kReservedFiles));
}

uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0;
  uint64_t resident_pages = 0;
  statm >> pages >> resident_pages;
  return resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace nowcalls::server
