// A library that is loaded before all others (LD_PRELOAD) and stops `nowcalls` (SIGSTOP) before its
// n-th fork, where NOWCALLS_STOP_AT_FORK says n. Its children count on from there.
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "shim/next_call.h"

namespace {

int forks = 0;

}  // namespace

extern "C" pid_t fork() {
  using namespace nowcalls::testing;  // NOLINT(google-build-using-namespace): the macro's.
  NOWCALLS_NEXT(fork);
  const char* const stop_at = std::getenv("NOWCALLS_STOP_AT_FORK");
  const bool is_nowcalls = std::strcmp(program_invocation_short_name, "nowcalls") == 0;
  if (is_nowcalls && stop_at != nullptr && ++forks == std::atoi(stop_at)) raise(SIGSTOP);
  return next();
}
