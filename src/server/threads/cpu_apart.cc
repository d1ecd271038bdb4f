#include "server/threads/cpu_apart.h"

#include <cstddef>

namespace nowcalls::server {

void CpuApart::CallerIsOn(int cpu) {
  if (cpu >= 0 && cpu != kept_off_ && !left_alone_) KeepOff(cpu);
}

// Linux wakes a thread on its waker's CPU; the waker waits although another CPU is idle. Where
// there are more CPUs than a cpu_set_t has room for, the calls fail and nothing changes.
void CpuApart::KeepOff(int cpu) {
  cpu_set_t wanted;
  cpu_set_t found;
  if (sched_getaffinity(0, sizeof(wanted), &wanted) != 0) return;
  if (pthread_getaffinity_np(thread_, sizeof(found), &found) != 0) return;
  // An affinity that neither the start nor this class set is an operator's: leave it for good.
  left_alone_ = !CPU_EQUAL(&found, set_.has_value() ? &*set_ : &wanted);
  if (left_alone_) return;
  // A caller with this CPU alone leaves it to the thread, until it has another.
  const bool others = CPU_COUNT(&wanted) > 1;
  if (others) CPU_CLR(static_cast<size_t>(cpu), &wanted);
  if (pthread_setaffinity_np(thread_, sizeof(wanted), &wanted) != 0) return;
  set_ = wanted;
  kept_off_ = others ? cpu : -1;
}

}  // namespace nowcalls::server
