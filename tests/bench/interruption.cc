#include "bench/interruption.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/clock.h"
#include "support/poll_until.h"

namespace nowcalls::compare {
namespace {

volatile sig_atomic_t signal_caught = 0;

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
constexpr int kSignalExitCode = 128;  // As a shell shows a signal, plus its number.

}  // namespace

void CatchInterruptions() {
  struct sigaction action {};
  action.sa_handler = [](int number) { signal_caught = number; };
  for (const int number : kSignals) sigaction(number, &action, nullptr);
}

void ThrowIfInterrupted() {
  if (signal_caught != 0) throw Interrupted{signal_caught};
}

bool Await(int64_t timeout_ms, const std::function<bool()>& predicate) {
  return testing::PollUntil(timeout_ms, [&predicate] {
    ThrowIfInterrupted();
    return predicate();
  });
}

void AwaitEnd(pid_t pid, int64_t timeout_ms) {
  // A signal that comes just before a sleep is noticed behind it.
  constexpr int64_t kSleepMsMax = 1'000;
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "pidfd_open");
  const int64_t until_ms = BoottimeMs() + timeout_ms;
  pollfd ended{.fd = fd, .events = POLLIN, .revents = 0};
  for (int64_t left_ms = timeout_ms; left_ms > 0 && ended.revents == 0 && signal_caught == 0;
       left_ms = until_ms - BoottimeMs()) {
    poll(&ended, 1, static_cast<int>(std::min(left_ms, kSleepMsMax)));
  }
  close(fd);
  ThrowIfInterrupted();
}

void Pause(int64_t ms) {
  Await(ms, [] { return false; });
}

void EndBy(const Interrupted& interrupted) {
  ::signal(interrupted.signal, SIG_DFL);
  ::raise(interrupted.signal);
  _exit(kSignalExitCode + interrupted.signal);
}

}  // namespace nowcalls::compare
