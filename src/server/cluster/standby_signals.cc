#include "server/cluster/standby_signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "base/check.h"
#include "base/clock.h"
#include "base/exit_codes.h"

namespace nowcalls::server {
namespace {

// Of the process, as signals are.
volatile std::sig_atomic_t end_was_asked = 0;
volatile std::sig_atomic_t asked_s = 0;  // When, by CLOCK_MONOTONIC.
int wake_fd = -1;

void OnSignal(int signal) {
  // A standby reads its files when it begins to serve, so SIGHUP asks for nothing.
  if (signal == SIGHUP) return;
  // A copy may take minutes, and a kill loses nothing: a second signal, as at a server, exits. One
  // that repeats at once is one signal.
  const int64_t now_s = MonotonicNs() / 1'000'000'000;
  if (end_was_asked != 0 && now_s > asked_s + 1) _exit(kExitFailure);
  if (end_was_asked == 0) asked_s = static_cast<std::sig_atomic_t>(now_s);
  end_was_asked = 1;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_fd, &one, sizeof(one));
}

void Handle(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaction(signal, &action, nullptr);
}

}  // namespace

StandbySignals::StandbySignals() {
  if (wake_fd < 0) wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  NOWCALLS_CHECK(wake_fd >= 0);
  Handle(OnSignal);
}

StandbySignals::~StandbySignals() { Handle(SIG_DFL); }

bool StandbySignals::end_asked() { return end_was_asked != 0; }

// Once the end was asked for, it never sleeps.
bool StandbySignals::Pause(int64_t ms) {
  pollfd wake{.fd = wake_fd, .events = POLLIN, .revents = 0};
  poll(&wake, 1, static_cast<int>(std::clamp<int64_t>(ms, 0, INT_MAX)));
  return !end_asked();
}

}  // namespace nowcalls::server
