// The guard: one process, one loop, no memory. RunGuard never returns.
//
// Happy path: it forks the command, reports the start, passes signals on, reaps, ends leftovers
// and reports the end.
//
// Failure modes:
//   exec of the command fails   its errno comes back through a pipe
//   exec is killed              recv returns 0: all descendants end (kIgnore: the guard leaves)
//   exec is stopped             the guard's own clock ends the command at valid_to_ms
//   SIGTERM is ignored          SIGKILL after 10 s
//   a process forks on          SIGKILL again, until none is left
//   the guard is killed         PR_SET_PDEATHSIG ends the command; exec ends the rest
#include "command/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "command/descendants.h"

namespace nowcalls::command {
namespace {

constexpr int64_t kKillAfterMs = 10'000;  // SIGTERM.
constexpr int64_t kKillAgainMs = 10;      // For what was forked meanwhile; the pause grows.
constexpr int64_t kLookMs = 1000;         // poll's clock stands still while the machine sleeps.
constexpr int kLate = ETIME;      // No errno of exec: the token was lost before the command began.
constexpr int kIdleKillsMax = 1;  // One may have missed what was forked meanwhile.

class Guard {
 public:
  Guard(const Guarded& guarded, int channel)
      : guarded_(guarded), channel_(channel), valid_to_ms_(guarded.valid_to_ms) {}

  [[noreturn]] void Run() {
    BlockSignals();
    Start();
    LetGoOfFiles();
    // Orders before the clock: a validity that was moved on in time counts.
    for (;;) {
      AwaitNews();
      Reap();
      TakeOrders();
      LookAtClock();
      Kill();
      if (command_ < 0 && (idle_kills_ > kIdleKillsMax || NothingIsLeft())) Finish();
    }
  }

 private:
  // All signals: a terminal's go past the guard to the command. Only SIGKILL and faults end a
  // guard: a blocked fault ends the process, too.
  void BlockSignals() {
    prctl(PR_SET_NAME, "nowcalls-guard");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigset_t signals;
    sigfillset(&signals);
    sigprocmask(SIG_SETMASK, &signals, nullptr);
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    children_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  }

  bool IsLate() const {
    return guarded_.on_lost != OnLost::kIgnore && BoottimeMs() >= valid_to_ms_;
  }

  void Start() {
    int report[2];  // Closed by a successful exec.
    if (children_ < 0 || pipe2(report, O_CLOEXEC) != 0) Refuse(errno);
    // The command, up to its exec.
    const pid_t guard = getpid();
    command_ = fork();
    if (command_ < 0) Refuse(errno);
    if (command_ == 0) {
      // A guard may be killed, if only by the kernel that needs memory.
      if (guarded_.on_lost != OnLost::kIgnore) {
        prctl(PR_SET_PDEATHSIG, guarded_.on_lost == OnLost::kKill ? SIGKILL : SIGTERM);
        if (getppid() != guard) _exit(127);
      }
      sigprocmask(SIG_SETMASK, &guarded_.mask, nullptr);
      // exec or the guard may have been stopped until now.
      int error = kLate;
      if (!IsLate()) {
        execvpe(guarded_.argv[0], guarded_.argv, guarded_.environment);
        error = errno;
      }
      [[maybe_unused]] const ssize_t written = write(report[1], &error, sizeof(error));
      _exit(127);
    }
    // The guard: an end of the pipe without bytes means that exec succeeded.
    close(report[1]);
    int error = 0;
    const bool failed = read(report[0], &error, sizeof(error)) == sizeof(error);
    if (failed && error != kLate) Refuse(error);
    Report({.kind = GuardReport::Kind::kStarted});
    was_lost_ = failed;
    if (failed) Finish();
  }

  [[noreturn]] void Refuse(int error) {
    Report({.kind = GuardReport::Kind::kStarted, .value = error});
    _exit(0);
  }

  // The connection to the server is exec's alone: when exec dies the server must see it. Pipes that
  // the command closes must be closed.
  void LetGoOfFiles() {
    dup2(channel_, 0);
    dup2(children_, 1);
    channel_ = 0;
    children_ = 1;
    closefrom(2);
  }

  void AwaitNews() {
    // Sleeps until a child ends, an order comes, or a kill or the clock is due. With a time it
    // sleeps at most kLookMs.
    int64_t timeout_ms = -1;
    if (killing_) {
      timeout_ms = kill_again_ms_;
      kill_again_ms_ = std::min(2 * kill_again_ms_, kLookMs);
    } else if (const int64_t next_ms = std::min(valid_to_ms_, kill_at_ms_); next_ms != INT64_MAX) {
      timeout_ms = std::clamp<int64_t>(next_ms - BoottimeMs(), 0, kLookMs);
    }
    pollfd fds[2] = {{channel_, POLLIN, 0}, {children_, POLLIN, 0}};
    poll(fds, 2, static_cast<int>(timeout_ms));
    signalfd_siginfo signal{};
    while (read(children_, &signal, sizeof(signal)) == sizeof(signal)) continue;
  }

  // The command and orphans.
  void Reap() {
    int status = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
      if (pid != command_) continue;
      if (WIFSTOPPED(status)) {
        Report({.kind = GuardReport::Kind::kStopped, .value = WSTOPSIG(status)});
      } else {
        command_ = -1;
        status_ = status;
      }
    }
  }

  void TakeOrders() {
    GuardOrder order;
    while (channel_ >= 0) {
      const ssize_t size = recv(channel_, &order, sizeof(order), MSG_DONTWAIT);
      if (size < 0) return;
      if (size == sizeof(order)) {
        Take(order);
      } else {
        LoseExec();
      }
    }
  }

  void Take(const GuardOrder& order) {
    switch (order.kind) {
      case GuardOrder::Kind::kSignal:
        if (order.to_all) {
          SignalDescendants(order.signal);
        } else if (command_ > 0) {
          kill(command_, order.signal);
        }
        break;
      case GuardOrder::Kind::kLost: Lose(); break;
      case GuardOrder::Kind::kValidTo: valid_to_ms_ = order.valid_to_ms; break;
    }
  }

  void LoseExec() {
    if (guarded_.on_lost == OnLost::kIgnore) _exit(0);
    close(channel_);
    channel_ = -1;
    EndAll();
  }

  void LookAtClock() {
    const int64_t now_ms = BoottimeMs();
    if (now_ms >= valid_to_ms_) Lose();
    if (now_ms >= kill_at_ms_) killing_ = true;
  }

  // Once: later orders of a validity are of no use to a lost token.
  void Lose() {
    valid_to_ms_ = INT64_MAX;
    if (guarded_.on_lost == OnLost::kIgnore || command_ < 0) return;
    was_lost_ = true;
    EndAll();
  }

  void EndAll() {
    if (guarded_.on_lost == OnLost::kKill) killing_ = true;
    if (killing_ || kill_at_ms_ != INT64_MAX) return;
    SignalDescendants(SIGTERM);
    SignalDescendants(SIGCONT);  // What is stopped takes no SIGTERM.
    kill_at_ms_ = BoottimeMs() + kKillAfterMs;
  }

  void Kill() {
    if (!killing_) return;
    idle_kills_ = SignalDescendants(SIGKILL) > 0 ? 0 : idle_kills_ + 1;
  }

  // Whether all descendants have ended, or may outlive the command. Ends the others.
  bool NothingIsLeft() {
    if (guarded_.on_lost == OnLost::kIgnore) return true;
    if (waitpid(-1, nullptr, WNOHANG) < 0) return true;
    EndAll();
    return false;
  }

  void Report(const GuardReport& report) const {
    // A stop may be dropped if exec does not read: it is stopped itself.
    const bool may_wait = report.kind != GuardReport::Kind::kStopped;
    send(channel_, &report, sizeof(report), MSG_NOSIGNAL | (may_wait ? 0 : MSG_DONTWAIT));
  }

  [[noreturn]] void Finish() const {
    Report({.kind = GuardReport::Kind::kEnded, .was_lost = was_lost_, .value = status_});
    _exit(0);
  }

  const Guarded guarded_;
  int channel_;  // -1: exec is gone.
  int children_ = -1;
  pid_t command_ = -1;  // -1: it has ended.
  int status_ = 0;      // Then.
  bool was_lost_ = false;
  bool killing_ = false;
  int64_t kill_at_ms_ = INT64_MAX;
  int idle_kills_ = 0;  // In a row, that found nothing that this process may end.
  int64_t kill_again_ms_ = kKillAgainMs;
  int64_t valid_to_ms_;
};

}  // namespace

void RunGuard(const Guarded& guarded, int channel) { Guard(guarded, channel).Run(); }

}  // namespace nowcalls::command
