#include "server/cluster/standby_signals.h"

#include <time.h>

namespace nowcalls::server {
namespace {

volatile std::sig_atomic_t end_was_asked = 0;

void OnSignal(int signal) {
  // A standby reads its files when it begins to serve, so SIGHUP asks for nothing.
  if (signal != SIGHUP) end_was_asked = 1;
}

void Handle(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaction(signal, &action, nullptr);
}

}  // namespace

StandbySignals::StandbySignals() { Handle(OnSignal); }
StandbySignals::~StandbySignals() { Handle(SIG_DFL); }

bool StandbySignals::end_asked() { return end_was_asked != 0; }

void StandbySignals::Pause(int64_t ms) {
  if (end_asked()) return;
  const timespec pause{.tv_sec = ms / 1'000, .tv_nsec = ms % 1'000 * 1'000'000};
  nanosleep(&pause, nullptr);
}

}  // namespace nowcalls::server
