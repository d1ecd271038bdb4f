#include "base/check.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/exit_codes.h"

namespace nowcalls {
namespace {

TEST_CASE("a failed check ends the process with the exit code that asks for a restart") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    close(STDERR_FILENO);
    NOWCALLS_CHECK(1 + 1 == 3);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == kExitIoError);
}

TEST_CASE("a check that holds does nothing") {
  NOWCALLS_CHECK(true);
  CHECK(kExitIoError == 74);
}

}  // namespace
}  // namespace nowcalls
