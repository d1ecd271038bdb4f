// Running: a command that runs as a child, with signals passed on to it.
//
// Thread: the main one, which outlives the child (PR_SET_PDEATHSIG counts from it). Signals must be
// blocked in all threads by BlockSignals before others are started.
#ifndef NOWCALLS_COMMAND_RUNNING_H_
#define NOWCALLS_COMMAND_RUNNING_H_

#include <sys/signalfd.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nowcalls/status.h"

namespace nowcalls::command {

// So that they can be read. Threads that are started afterwards block them too.
void BlockSignals();

class Running {
 public:
  Running();
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  // Replaces or adds variables of the child's environment. `dies_with_us`: it gets SIGTERM when
  // this process is killed. Returns 0, or the errno of what kept it from running.
  int Start(const std::vector<std::string>& argv,
            const std::vector<std::pair<std::string, std::string>>& variables, bool dies_with_us);

  // Waits until the child has ended, `event_fd` is readable, or the time is over (-1: never). Its
  // exit code, or 128 and the signal that ended it; none: it runs.
  std::optional<int> Wait(int event_fd, int timeout_ms);
  void Signal(int signal) const;

 private:
  // Whether the child has ended.
  bool TakeSignal(const signalfd_siginfo& signal);
  std::optional<int> Reap();

  const int signal_fd_;
  pid_t child_ = -1;
};

}  // namespace nowcalls::command

#endif  // NOWCALLS_COMMAND_RUNNING_H_
