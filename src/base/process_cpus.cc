#include "base/process_cpus.h"

#include <sched.h>
#include <unistd.h>

namespace nowcalls {

void UseCpusOfProcess() {
  cpu_set_t cpus;
  if (sched_getaffinity(getpid(), sizeof(cpus), &cpus) != 0) return;
  static_cast<void>(sched_setaffinity(0, sizeof(cpus), &cpus));
}

}  // namespace nowcalls
