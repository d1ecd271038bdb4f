#include "support/forked_child.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>

#include "support/poll_until.h"

namespace nowcalls::testing {

bool ChildFinds(const std::function<bool()>& looks) {
  const pid_t child = fork();
  if (child == 0) _exit(looks() ? 0 : 1);
  std::optional<int> ended;
  const bool in_time = PollUntil(kPatienceMs, [&] {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) ended = status;
    return ended.has_value();
  });
  if (!in_time) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  return ended == 0;
}

}  // namespace nowcalls::testing
