#include "base/background_thread.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

namespace nowcalls {
namespace {

cpu_set_t CpusOf(pid_t thread) {
  cpu_set_t cpus;
  REQUIRE(sched_getaffinity(thread, sizeof(cpus), &cpus) == 0);
  return cpus;
}

TEST_CASE("a thread that was started by one with few CPUs gets those of the process") {
  const cpu_set_t all = CpusOf(getpid());
  cpu_set_t one;
  CPU_ZERO(&one);
  for (size_t cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  }
  cpu_set_t inherited;
  cpu_set_t used;
  std::thread few([&] {
    REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
    std::thread late([&] {
      inherited = CpusOf(0);
      UseCpusOfProcess();
      used = CpusOf(0);
    });
    late.join();
  });
  few.join();
  CHECK(CPU_EQUAL(&inherited, &one));
  CHECK(CPU_EQUAL(&used, &all));
}

int NiceOf(pid_t thread) { return getpriority(PRIO_PROCESS, static_cast<id_t>(thread)); }

TEST_CASE("a thread that steps back has a lower priority, and nobody else has") {
  const int before = NiceOf(gettid());
  int stepped_back = 0;
  int lower = 0;
  std::thread thread([&] {
    StepBack();
    stepped_back = NiceOf(gettid());
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 15);
    StepBack();
    lower = NiceOf(gettid());
  });
  thread.join();
  CHECK(stepped_back == std::min(before + 5, 19));
  CHECK(lower == std::max(before, 15));
  CHECK(NiceOf(gettid()) == before);
}

}  // namespace
}  // namespace nowcalls
