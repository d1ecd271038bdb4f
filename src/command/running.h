// Running: a command that runs as a child, with signals passed on to it.
//
// Thread: the main one, which outlives the child (PR_SET_PDEATHSIG counts from it). Build it before
// other threads start: they must have its signals blocked.
#ifndef NOWCALLS_COMMAND_RUNNING_H_
#define NOWCALLS_COMMAND_RUNNING_H_

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nowcalls/status.h"

namespace nowcalls::command {

class Running {
 public:
  // Blocks the signals that are passed on, and reads them from now on. A signal that is ignored, as
  // SIGHUP is under nohup, stays so.
  Running();
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  // Before Start: waits until `event_fd` is readable, and returns 0, or until a signal asks this
  // process to end, and returns its number.
  int WaitForEvent(int event_fd);

  // Replaces or adds variables of the child's environment. `dies_with_us`: it gets SIGTERM when
  // this process is killed. Returns 0, or the errno of what kept it from running.
  int Start(const std::vector<std::string>& argv,
            const std::vector<std::pair<std::string, std::string>>& variables, bool dies_with_us);

  // Waits until the child has ended, `event_fd` is readable, or the time is over (-1: never). Its
  // exit code, or 128 and the signal that ended it; none: it runs.
  std::optional<int> Wait(int event_fd, int timeout_ms);
  void Signal(int signal) const;
  // The signal that ended the command; 0: none did.
  int ended_by() const { return ended_by_; }

 private:
  // Passes it on. Whether it is about the child, which may have ended.
  bool TakeSignal(const signalfd_siginfo& signal) const;
  std::optional<int> Reap();

  sigset_t before_{};  // What was blocked, for the child.
  int signal_fd_ = -1;
  pid_t child_ = -1;
  int ended_by_ = 0;
};

// Ends this process by SIGINT, so that a shell's loop ends as it does for the command alone.
[[noreturn]] void EndBySigint();

}  // namespace nowcalls::command

#endif  // NOWCALLS_COMMAND_RUNNING_H_
