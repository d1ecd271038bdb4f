#include "server/cpu_apart.h"

#include <cstddef>

namespace nowcalls::server {

void CpuApart::CallerIsOn(int cpu) {
  if (cpu >= 0 && cpu != kept_off_ && !left_alone_) KeepOff(cpu);
}

// The calls fail where there are more CPUs than a cpu_set_t has room for.
void CpuApart::KeepOff(int cpu) {
  cpu_set_t wanted;
  cpu_set_t found;
  if (sched_getaffinity(0, sizeof(wanted), &wanted) != 0) return;
  if (pthread_getaffinity_np(thread_, sizeof(found), &found) != 0) return;
  left_alone_ = !CPU_EQUAL(&found, set_.has_value() ? &*set_ : &wanted);
  if (left_alone_) return;
  // A caller that has only this CPU leaves it to the thread, too, until the caller has another.
  const bool others = CPU_COUNT(&wanted) > 1;
  if (others) CPU_CLR(static_cast<size_t>(cpu), &wanted);
  if (pthread_setaffinity_np(thread_, sizeof(wanted), &wanted) != 0) return;
  set_ = wanted;
  kept_off_ = others ? cpu : -1;
}

}  // namespace nowcalls::server
