// CpuApart: keeps a thread off the CPU of the thread that wakes it.
//
// For rare work of some milliseconds: Linux wakes a thread on its waker's CPU, and the waker waits
// although another CPU is idle.
//
// Thread: members are called on the waker's thread.
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

  // The caller runs on `cpu` (sched_getcpu). Allows the thread all CPUs of the caller but this one;
  // this one too if the caller has no other. Changes nothing if the system does not tell, or once
  // somebody else has set the thread's affinity (taskset, a cpuset).
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
