// CpuApart: keeps a thread off its waker's CPU, for rare work of some ms.
//
// Thread: that of the waker.
#ifndef NOWCALLS_SERVER_THREADS_CPU_APART_H_
#define NOWCALLS_SERVER_THREADS_CPU_APART_H_

#include <pthread.h>
#include <sched.h>

#include <optional>

namespace nowcalls::server {

class CpuApart {
 public:
  // `thread` outlives it.
  explicit CpuApart(pthread_t thread) : thread_(thread) {}

  // `cpu`: of sched_getcpu. Allows the thread the caller's other CPUs, if any, unless somebody else
  // has set its affinity (taskset, a cpuset).
  void CallerIsOn(int cpu);

 private:
  void KeepOff(int cpu);

  const pthread_t thread_;
  int kept_off_ = -1;
  std::optional<cpu_set_t> set_;  // By KeepOff.
  bool left_alone_ = false;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_THREADS_CPU_APART_H_
