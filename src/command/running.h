// Running: a command that runs below a guard (guard.h), with signals passed on to it.
//
// Thread: the main one. Build it before other threads start: they must have its signals blocked.
#ifndef NOWCALLS_COMMAND_RUNNING_H_
#define NOWCALLS_COMMAND_RUNNING_H_

#include <signal.h>
#include <sys/signalfd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "command/arguments.h"
#include "command/guard.h"

namespace nowcalls::command {

// How a command ended.
struct Ended {
  int exit_code = 0;      // Or 128 and the signal that ended it.
  int signal = 0;         // That signal; 0: none.
  bool was_lost = false;  // The guard ended it since its token was lost.
};

class Running {
 public:
  // Blocks all signals but those of faults, and reads them from now on. A signal that is ignored,
  // as SIGHUP is under nohup, stays so; SIGPIPE does nothing. From here on this process reaps what
  // it inherits, as PID 1 must. `to_all`: what is passed on reaches all that the command started.
  Running(OnLost on_lost, bool to_all);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  // Before Start: waits until `event_fd` is readable, and returns 0, or until a signal asks this
  // process to end, and returns its number.
  int WaitForEvent(int event_fd);

  // Replaces or adds variables of the command's environment. Returns 0, or the errno of what kept
  // it from running.
  int Start(const std::vector<std::string>& argv,
            const std::vector<std::pair<std::string, std::string>>& variables);

  // Waits until the command has ended, `event_fd` is readable, or the time is over (-1: never).
  // None: it runs.
  std::optional<Ended> Wait(int event_fd, int timeout_ms);
  // The token is lost: what `on_lost` says happens.
  void TellLost() const { Order({.kind = GuardOrder::Kind::kLost}); }
  // It is lost at that time of CLOCK_BOOTTIME, unless another call moves it: then the guard does
  // the same without a word of this process, which may be stopped.
  void TellValidTo(int64_t valid_to_ms);

 private:
  void TakeSignal(const signalfd_siginfo& signal);
  std::optional<Ended> TakeReports();
  Ended EndWithoutGuard();
  void Order(const GuardOrder& order) const;

  const OnLost on_lost_;
  const bool to_all_;
  sigset_t before_{};  // What was blocked, for the command.
  int signal_fd_ = -1;
  int guard_fd_ = -1;
  int64_t valid_to_ms_ = INT64_MAX;  // As the guard knows it.
};

// Ends this process by SIGINT, so that a shell's loop ends as it does for the command alone.
[[noreturn]] void EndBySigint();

}  // namespace nowcalls::command

#endif  // NOWCALLS_COMMAND_RUNNING_H_
