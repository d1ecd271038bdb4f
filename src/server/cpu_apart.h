// CpuApart: keeps a thread off the CPU of the one that hands it work.
//
// For work of milliseconds, seldom: Linux begins it where the one is that handed it over, who then
// waits for its end although another CPU is idle.
//
// Thread: members are called on the thread that hands out work.
#ifndef NOWCALLS_SERVER_CPU_APART_H_
#define NOWCALLS_SERVER_CPU_APART_H_

#include <pthread.h>
#include <sched.h>

#include <optional>

namespace nowcalls::server {

class CpuApart {
 public:
  // `thread` outlives it.
  explicit CpuApart(pthread_t thread) : thread_(thread) {}

  // The caller runs on `cpu` (sched_getcpu). The thread may use all others that the caller may use;
  // if there is none, that one. If the system does not tell, nothing changes. Once somebody else
  // has set the thread's affinity (taskset, a cpuset), it is left alone.
  void CallerIsOn(int cpu);

 private:
  void KeepOff(int cpu);

  const pthread_t thread_;
  int kept_off_ = -1;
  std::optional<cpu_set_t> set_;  // By KeepOff.
  bool left_alone_ = false;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CPU_APART_H_
