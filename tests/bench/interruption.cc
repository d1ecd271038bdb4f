#include "bench/interruption.h"

#include <signal.h>
#include <unistd.h>

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

void Pause(int64_t ms) {
  Await(ms, [] { return false; });
}

void EndBy(const Interrupted& interrupted) {
  ::signal(interrupted.signal, SIG_DFL);
  ::raise(interrupted.signal);
  _exit(kSignalExitCode + interrupted.signal);
}

}  // namespace nowcalls::compare
