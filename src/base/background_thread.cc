#include "base/background_thread.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace nowcalls {

void UseCpusOfProcess() {
  // getpid() is the main thread, 0 the calling one. A thread begins with the CPUs of the thread
  // that started it, which may have been kept off some.
  cpu_set_t cpus;
  if (sched_getaffinity(getpid(), sizeof(cpus), &cpus) != 0) return;
  static_cast<void>(sched_setaffinity(0, sizeof(cpus), &cpus));
}

void StepBack() {
  constexpr int kNicer = 5;
  constexpr int kNicest = 19;
  const int nice =
      std::min(getpriority(PRIO_PROCESS, static_cast<id_t>(getpid())) + kNicer, kNicest);
  // Linux has a nice value for each thread. A thread that is nicer already keeps what it has.
  const auto thread = static_cast<id_t>(gettid());
  if (getpriority(PRIO_PROCESS, thread) >= nice) return;
  static_cast<void>(setpriority(PRIO_PROCESS, thread, nice));
}

}  // namespace nowcalls
