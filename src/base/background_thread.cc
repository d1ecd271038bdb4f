#include "base/background_thread.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace nowcalls {

void UseCpusOfProcess() {
  cpu_set_t cpus;
  if (sched_getaffinity(getpid(), sizeof(cpus), &cpus) != 0) return;
  static_cast<void>(sched_setaffinity(0, sizeof(cpus), &cpus));
}

void StepBack() {
  constexpr int kNicer = 5;
  constexpr int kNicest = 19;
  const int nice =
      std::min(getpriority(PRIO_PROCESS, static_cast<id_t>(getpid())) + kNicer, kNicest);
  const auto thread = static_cast<id_t>(gettid());
  if (getpriority(PRIO_PROCESS, thread) >= nice) return;
  static_cast<void>(setpriority(PRIO_PROCESS, thread, nice));
}

}  // namespace nowcalls
