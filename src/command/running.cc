#include "command/running.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string_view>

namespace nowcalls::command {
namespace {

constexpr int kPassedOn[] = {SIGINT,  SIGTERM, SIGHUP,   SIGQUIT, SIGUSR1,
                             SIGUSR2, SIGCONT, SIGWINCH, SIGTSTP};

// Of the signals that are passed on, those that are not ignored, and SIGCHLD.
sigset_t ReadSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : kPassedOn) {
    struct sigaction action {};
    sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&signals, number);
  }
  sigaddset(&signals, SIGCHLD);
  return signals;
}

// That of this process, with `variables` added or replaced.
std::vector<std::string> Environment(
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

bool AsksToEnd(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

}  // namespace

Running::Running() {
  // If it is ignored, the kernel reaps children, and their exit codes are gone.
  signal(SIGCHLD, SIG_DFL);
  const sigset_t signals = ReadSignals();
  sigprocmask(SIG_BLOCK, &signals, &before_);
  signal_fd_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

Running::~Running() {
  if (signal_fd_ >= 0) close(signal_fd_);
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
    }
    if (fds[1].revents != 0) return 0;
  }
}

int Running::Start(const std::vector<std::string>& argv,
                   const std::vector<std::pair<std::string, std::string>>& variables,
                   bool dies_with_us) {
  int report[2];  // Closed by a successful exec.
  if (signal_fd_ < 0 || pipe2(report, O_CLOEXEC) != 0) return errno;
  std::vector<std::string> arguments = argv;
  std::vector<std::string> environment = Environment(variables);
  const std::vector<char*> argument_pointers = Pointers(&arguments);
  const std::vector<char*> environment_pointers = Pointers(&environment);
  const pid_t parent = getpid();
  child_ = fork();
  if (child_ == 0) {
    // Only async-signal-safe calls: other threads may have held locks.
    if (dies_with_us) {
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (getppid() != parent) raise(SIGTERM);  // It died before.
    }
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    execvpe(argument_pointers[0], argument_pointers.data(), environment_pointers.data());
    const int error = errno;
    [[maybe_unused]] const ssize_t written = write(report[1], &error, sizeof(error));
    _exit(127);
  }
  int error = child_ < 0 ? errno : 0;
  close(report[1]);
  if (child_ > 0 && read(report[0], &error, sizeof(error)) == sizeof(error)) {
    waitpid(child_, nullptr, 0);
  }
  close(report[0]);
  return error;
}

std::optional<int> Running::Wait(int event_fd, int timeout_ms) {
  pollfd fds[2] = {{signal_fd_, POLLIN, 0}, {event_fd, POLLIN, 0}};
  poll(fds, 2, timeout_ms);
  signalfd_siginfo signal{};
  while (read(signal_fd_, &signal, sizeof(signal)) == sizeof(signal)) {
    if (!TakeSignal(signal)) continue;
    if (const auto ended = Reap()) return ended;
  }
  return std::nullopt;
}

bool Running::TakeSignal(const signalfd_siginfo& signal) const {
  const int number = static_cast<int>(signal.ssi_signo);
  if (number == SIGCHLD) return true;
  // A terminal signals the whole process group, and the command is in it.
  if (signal.ssi_code != SI_KERNEL) Signal(number);
  return false;
}

std::optional<int> Running::Reap() {
  int status = 0;
  if (waitpid(child_, &status, WNOHANG | WUNTRACED) != child_) return std::nullopt;
  if (WIFSTOPPED(status)) {
    // Job control stopped the command: this process stops too, so that the shell sees it. When the
    // shell continues this process, the command continues. SIGSTOP for the command alone is no job
    // control; nobody would continue this process.
    if (WSTOPSIG(status) != SIGSTOP) {
      raise(SIGSTOP);
      Signal(SIGCONT);
    }
    return std::nullopt;
  }
  child_ = -1;
  ended_by_ = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return ended_by_ != 0 ? 128 + ended_by_ : WEXITSTATUS(status);
}

void Running::Signal(int signal) const {
  if (child_ > 0) kill(child_, signal);
}

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
