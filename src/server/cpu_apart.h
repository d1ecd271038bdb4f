// CpuApart: keeps a thread off the CPU of the one that hands it work.
//
// Where two threads wake each other thousands of times a second and other CPUs are idle for less
// than half a millisecond at a time, Linux leaves both on one CPU, and one waits for the other.
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
  // Threads are moved for a moment when others want their CPU. The caller has moved when it was
  // elsewhere so many times in a row, if it hands over thousands of times a second.
  static constexpr int kMovedAfter = 64;

  // `thread` outlives it. `moved_after`: 1 or more.
  explicit CpuApart(pthread_t thread, int moved_after = kMovedAfter)
      : thread_(thread), moved_after_(moved_after), elsewhere_(moved_after - 1) {}

  // The caller runs on `cpu` (sched_getcpu). The thread may use all others that the caller may use;
  // if there is none, that one. If the system does not tell, nothing changes. Once somebody else
  // has set the thread's affinity (taskset, a cpuset), it is left alone.
  void CallerIsOn(int cpu);

 private:
  void KeepOff(int cpu);

  const pthread_t thread_;
  const int moved_after_;
  int kept_off_ = -1;
  // How many times in a row the caller was not on kept_off_; what it says first counts at once.
  int elsewhere_;
  std::optional<cpu_set_t> set_;  // By KeepOff.
  bool left_alone_ = false;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CPU_APART_H_
