#include "base/check.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "base/exit_codes.h"

namespace nowcalls {

namespace {

constexpr unsigned kLastWordsSeconds = 1;

}  // namespace

void CheckFailed(const char* file, int line, const char* expression) {
  // Nobody may read stderr; the process ends all the same.
  std::signal(SIGALRM, [](int) { _exit(kExitIoError); });
  alarm(kLastWordsSeconds);
  std::fprintf(stderr,
               "fatal: %s:%d: check failed: %s. The server's memory is no longer trusted; restart "
               "it to recover from the ledger.\n",
               file, line, expression);
  std::fflush(stderr);
  _exit(kExitIoError);
}

}  // namespace nowcalls
