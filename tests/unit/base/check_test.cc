#include "base/check.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/exit_codes.h"
#include "support/poll_until.h"

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

TEST_CASE("a failed check ends the process also when nobody reads its stderr") {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    while (write(ends[1], "x", 1) > 0) {
    }
    fcntl(ends[1], F_SETFL, 0);
    dup2(ends[1], STDERR_FILENO);
    NOWCALLS_CHECK(1 + 1 == 3);
    _exit(0);
  }
  int status = 0;
  const bool ended = testing::PollUntil(testing::kPatienceMs,
                                        [&] { return waitpid(child, &status, WNOHANG) == child; });
  if (!ended) kill(child, SIGKILL);
  REQUIRE(ended);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == kExitIoError);
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("a check that holds does nothing") {
  NOWCALLS_CHECK(true);
  CHECK(kExitIoError == 74);
}

}  // namespace
}  // namespace nowcalls
