#include "base/check.h"

#include <unistd.h>

#include <cstdio>

#include "base/exit_codes.h"

namespace nowcalls {

void CheckFailed(const char* file, int line, const char* expression) {
  std::fprintf(stderr,
               "fatal: %s:%d: check failed: %s. The server's memory is no longer trusted; restart "
               "it to recover from the ledger.\n",
               file, line, expression);
  std::fflush(stderr);
  _exit(kExitIoError);
}

}  // namespace nowcalls
