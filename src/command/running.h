// Running: a command below a guard (guard.h), with signals passed on.
//
// Thread: the main one. Construct it before other threads, which inherit its signal mask.
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

struct Ended {
  int exit_code = 0;      // Or 128 and the signal that ended it.
  int signal = 0;         // That signal; 0: none.
  bool was_lost = false;  // The guard ended it since its token was lost.
};

class Running {
 public:
  // Blocks and reads all signals but faults and ignored ones; SIGPIPE does nothing. Reaps inherited
  // processes. `to_all`: passes signals to all descendants.
  Running(OnLost on_lost, bool to_all);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  // Before Start: waits for `event_fd` (0) or a signal that asks to end (its number).
  int WaitForEvent(int event_fd);

  // `variables` replace or extend the environment. Returns 0, or the errno of a failure.
  int Start(const std::vector<std::string>& argv,
            const std::vector<std::pair<std::string, std::string>>& variables);

  // Waits for the end, `event_fd`, or the time (-1: no limit). None: it runs.
  std::optional<Ended> Wait(int event_fd, int timeout_ms);
  // The token is lost: acts by `on_lost`.
  void TellLost() const { Order({.kind = GuardOrder::Kind::kLost}); }
  // The guard does so at this CLOCK_BOOTTIME, even if this process is stopped. A later call moves
  // it.
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

// Ends this process by SIGINT, which ends a shell's loop.
[[noreturn]] void EndBySigint();

}  // namespace nowcalls::command

#endif  // NOWCALLS_COMMAND_RUNNING_H_
