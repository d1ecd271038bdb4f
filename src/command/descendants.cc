// SignalDescendants: reads parents from /proc/PID/stat, marks what is below this process, signals.
//
// Failure modes: a process that ends meanwhile is skipped; one forked meanwhile may be missed; more
// than kProcessesMax processes are not read; without /proc there are none.
#include "command/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace nowcalls::command {
namespace {

constexpr size_t kProcessesMax = 65536;  // What is beyond is not found.

struct Process {
  pid_t pid;
  pid_t parent;
  bool runs;   // It has not ended: a zombie may stand between this process and what was below it.
  bool below;  // A descendant of this process.
};

// Static, since a child forked beside threads must not allocate.
Process g_processes[kProcessesMax];

// Reads "PID (NAME) STATE PARENT ...". False: it is gone.
bool ReadProcess(pid_t pid, Process* process) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/stat", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[512];
  const ssize_t size = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (size <= 0) return false;
  text[size] = '\0';
  const char* const name_end = std::strrchr(text, ')');  // A name may have anything.
  char state = 'X';
  pid_t parent = 0;
  if (name_end == nullptr || std::sscanf(name_end, ") %c %d", &state, &parent) != 2) return false;
  *process = {.pid = pid, .parent = parent, .runs = state != 'Z' && state != 'X', .below = false};
  return true;
}

// All processes, into g_processes.
size_t ReadProcesses() {
  const int folder = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return 0;
  size_t found = 0;
  alignas(dirent64) char entries[8192];
  for (ssize_t size = 0; (size = getdents64(folder, entries, sizeof(entries))) > 0;) {
    for (ssize_t at = 0; at < size && found < kProcessesMax;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(entries + at);
      at += entry->d_reclen;
      const auto pid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
      if (pid > 0 && ReadProcess(pid, &g_processes[found])) ++found;
    }
  }
  close(folder);
  return found;
}

bool IsBelow(pid_t pid, size_t processes) {
  if (pid == getpid()) return true;
  for (size_t i = 0; i < processes; ++i) {
    if (g_processes[i].pid == pid) return g_processes[i].below;
  }
  return false;
}

}  // namespace

size_t SignalDescendants(int signal) {
  const size_t processes = ReadProcesses();
  // Mark until a round finds nothing new. Parents mostly come first, so two rounds are usual.
  for (bool found = true; found;) {
    found = false;
    for (size_t i = 0; i < processes; ++i) {
      Process* const process = &g_processes[i];
      if (process->below || !IsBelow(process->parent, processes)) continue;
      process->below = true;
      found = true;
    }
  }
  // Zombies are below, but take no signal and do not count.
  size_t signalled = 0;
  for (size_t i = 0; i < processes; ++i) {
    const Process& process = g_processes[i];
    if (process.below && process.runs && kill(process.pid, signal) == 0) ++signalled;
  }
  return signalled;
}

}  // namespace nowcalls::command
