#include "command/running.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <initializer_list>
#include <string_view>

#include "command/descendants.h"

namespace nowcalls::command {
namespace {

// Faults are this process's own. SIGKILL and SIGSTOP cannot be blocked.
constexpr int kNotRead[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGKILL, SIGSTOP};

bool IsOneOf(int number, std::initializer_list<int> numbers) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

// Signals that are neither ignored nor faults; SIGCHLD is one of them. A signalfd would read
// ignored
// signals, too.
sigset_t ReadSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int number = 1; number <= SIGRTMAX; ++number) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) != 0) continue;  // The C library's own.
    if (action.sa_handler != SIG_IGN) sigaddset(&signals, number);
  }
  for (const int number : kNotRead) sigdelset(&signals, number);
  return signals;
}

// A terminal signals the whole process group, which the command is in. On hangup it signals the
// leader of the session alone, so that leader passes the signal on.
bool CameToTheCommand(const signalfd_siginfo& signal) {
  const int number = static_cast<int>(signal.ssi_signo);
  if (signal.ssi_code != SI_KERNEL) return false;
  if (number == SIGHUP || number == SIGCONT) return getsid(0) != getpid();
  return IsOneOf(number, {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH});
}

// While there is no command: a request to end, or the end of a time that was set for it.
bool AsksToEnd(int number) {
  return IsOneOf(number,
                 {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU});
}

// Reaps the guard, which has reported before, and orphans.
void ReapAll() {
  while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
}

Ended EndedWith(int status, bool was_lost) {
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return {.exit_code = signal != 0 ? 128 + signal : WEXITSTATUS(status),
          .signal = signal,
          .was_lost = was_lost};
}

// The environment of this process, with `variables` added or replaced.
std::vector<std::string> EnvironmentWith(
    const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> merged;
  merged.reserve(variables.size());
  for (const auto& [name, value] : variables) merged.push_back(name + "=" + value);
  const size_t added = merged.size();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    const bool replaced =
        std::any_of(merged.begin(), merged.begin() + static_cast<std::ptrdiff_t>(added),
                    [&](const std::string& variable) { return variable.starts_with(name); });
    if (!replaced) merged.emplace_back(text);
  }
  return merged;
}

std::vector<char*> Pointers(std::vector<std::string>* strings) {
  std::vector<char*> pointers;
  for (std::string& string : *strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Running::Running(OnLost on_lost, bool to_all) : on_lost_(on_lost), to_all_(to_all) {
  // If it is ignored, the kernel reaps children, and their exit codes are gone.
  signal(SIGCHLD, SIG_DFL);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t signals = ReadSignals();
  sigset_t blocked = signals;
  // SIGPIPE is blocked and not read: if it were ignored, the command would ignore it, too.
  sigdelset(&signals, SIGPIPE);
  sigprocmask(SIG_BLOCK, &blocked, &before_);
  signal_fd_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

Running::~Running() {
  if (signal_fd_ >= 0) close(signal_fd_);
  if (guard_fd_ >= 0) close(guard_fd_);
}

int Running::WaitForEvent(int event_fd) {
  for (;;) {
    pollfd fds[2] = {{signal_fd_, POLLIN, 0}, {event_fd, POLLIN, 0}};
    poll(fds, 2, -1);
    signalfd_siginfo signal{};
    while (read(signal_fd_, &signal, sizeof(signal)) == sizeof(signal)) {
      const int number = static_cast<int>(signal.ssi_signo);
      if (AsksToEnd(number)) return number;
      if (number == SIGTSTP) raise(SIGSTOP);
      if (number == SIGCHLD) ReapAll();
    }
    if (fds[1].revents != 0) return 0;
  }
}

int Running::Start(const std::vector<std::string>& argv,
                   const std::vector<std::pair<std::string, std::string>>& variables) {
  int ends[2];
  if (signal_fd_ < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return errno;
  }
  // All memory before the fork: the client's threads may hold the allocator's lock.
  std::vector<std::string> arguments = argv;
  std::vector<std::string> environment = EnvironmentWith(variables);
  const std::vector<char*> argument_pointers = Pointers(&arguments);
  const std::vector<char*> environment_pointers = Pointers(&environment);
  const pid_t guard = fork();
  if (guard == 0) {
    close(ends[0]);
    RunGuard({.argv = argument_pointers.data(),
              .environment = environment_pointers.data(),
              .mask = before_,
              .on_lost = on_lost_,
              .valid_to_ms = valid_to_ms_},
             ends[1]);
  }
  const int error = errno;
  close(ends[1]);
  guard_fd_ = ends[0];
  if (guard < 0) return error;
  // The first report says whether the command runs. None: the guard died.
  GuardReport report;
  if (recv(guard_fd_, &report, sizeof(report), 0) != sizeof(report)) return ECHILD;
  return report.value;
}

std::optional<Ended> Running::Wait(int event_fd, int timeout_ms) {
  pollfd fds[3] = {{signal_fd_, POLLIN, 0}, {event_fd, POLLIN, 0}, {guard_fd_, POLLIN, 0}};
  poll(fds, 3, timeout_ms);
  signalfd_siginfo signal{};
  while (read(signal_fd_, &signal, sizeof(signal)) == sizeof(signal)) TakeSignal(signal);
  return TakeReports();
}

void Running::TellValidTo(int64_t valid_to_ms) {
  if (valid_to_ms == valid_to_ms_) return;
  valid_to_ms_ = valid_to_ms;
  if (guard_fd_ < 0) return;  // The guard begins with it.
  Order({.kind = GuardOrder::Kind::kValidTo, .valid_to_ms = valid_to_ms});
}

void Running::TakeSignal(const signalfd_siginfo& signal) {
  if (signal.ssi_signo == SIGCHLD) return ReapAll();
  if (CameToTheCommand(signal)) return;
  Order({.kind = GuardOrder::Kind::kSignal,
         .to_all = to_all_,
         .signal = static_cast<int>(signal.ssi_signo)});
}

std::optional<Ended> Running::TakeReports() {
  GuardReport report;
  for (;;) {
    const ssize_t size = recv(guard_fd_, &report, sizeof(report), MSG_DONTWAIT);
    // The guard left an order unread: its last report comes behind this error.
    if (size < 0 && errno == ECONNRESET) continue;
    if (size < 0) return std::nullopt;
    if (size != sizeof(report)) return EndWithoutGuard();
    if (report.kind == GuardReport::Kind::kEnded) return EndedWith(report.value, report.was_lost);
    // Job control stopped the command: this process stops too, so that the shell sees it. When the
    // shell continues this process, the command continues. SIGSTOP for the command alone is no job
    // control; nobody would continue this process.
    if (report.value == SIGSTOP) continue;
    raise(SIGSTOP);
    Order({.kind = GuardOrder::Kind::kSignal, .signal = SIGCONT});
  }
}

// The guard was killed, so nothing would end the command with its token. Its descendants have
// become
// children of this process, which ends them all.
Ended Running::EndWithoutGuard() {
  while (SignalDescendants(SIGKILL) > 0) {
    poll(nullptr, 0, 10);
    ReapAll();
  }
  return EndedWith(SIGKILL, false);
}

void Running::Order(const GuardOrder& order) const {
  send(guard_fd_, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Pending with its default action, the signal ends the process as soon as it is unblocked.
void EndBySigint() {
  signal(SIGINT, SIG_DFL);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  raise(SIGINT);
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  _exit(128 + SIGINT);
}

}  // namespace nowcalls::command
