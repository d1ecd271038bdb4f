#include "base/process_cpus.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <unistd.h>

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

}  // namespace
}  // namespace nowcalls
